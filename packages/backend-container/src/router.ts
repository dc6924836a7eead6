import { join } from 'node:path';
import type {
  BackendNetworkReport,
  PlannedNetwork,
  RouterNamespace,
  SandboxKey,
} from '@dsec/backend';
import type { SpawnFields } from '@dsec/protocol';
import { asDsecError, DsecError } from '@dsec/std';
import type { LauncherLink } from './launcher-link.ts';

/** The router namespace of this edge's launcher. */
export interface Router {
  open(gateway: string, signal?: AbortSignal): Promise<RouterNamespace>;
  /** As far as is known: that a node cannot is seen when it is tried. */
  report(): BackendNetworkReport;
}

/** Below the state root. */
const NAMESPACE_PIN = 'run/router.net';

/** `cgroup` is the edge's own directory in version 2. */
export function createRouter(stateRoot: string, link: LauncherLink, cgroup: string): Router {
  let unavailable: DsecError | undefined;
  return {
    async open(gateway, signal) {
      const client = await link.client(signal);
      try {
        await client.makeRouter(addressNumber(gateway), signal);
      } catch (thrown) {
        const error = asDsecError(thrown);
        if (error.code === 'unsupported') unavailable = error;
        throw error;
      }
      unavailable = undefined;
      const of = ({ id, generation }: SandboxKey) => join(cgroup, `${id}-${generation}`);
      return { namespacePath: join(stateRoot, NAMESPACE_PIN), cgroups: { parent: cgroup, of } };
    },
    report: () => (unavailable === undefined ? {} : { unavailable }),
  };
}

/** What the launcher is told of a sandbox's link. `invalid-argument` for what are no two addresses. */
export function linkOf(network: PlannedNetwork | undefined): Pick<SpawnFields, 'link'> {
  if (network === undefined) return {};
  const [address, gateway] = [network.address, network.gateway].map(addressNumber);
  return address === undefined || gateway === undefined ? {} : { link: { address, gateway } };
}

const PARTS = 4;
const PART_MAX = 255;

/** The first part of the dotted form is the highest byte. */
export function addressNumber(address: string): number {
  const parts = address.split('.');
  const isAddress =
    parts.length === PARTS && parts.every((part) => /^\d{1,3}$/.test(part) && +part <= PART_MAX);
  if (!isAddress) throw new DsecError('invalid-argument', `${address} is no IPv4 address`);
  return parts.reduce((number, part) => number * (PART_MAX + 1) + Number(part), 0);
}
