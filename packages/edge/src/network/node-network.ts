/**
 * Names of sandboxes on a real node: the DNS and egress proxies of `@dsec/network`, which listen in the
 * router namespace and go out from the host's. Sandboxes have no other way out: their packets reach the
 * gateway's address and nothing else, since the router has no uplink; and the packet filter, where there is
 * one, lets them reach no other port than those of the proxies.
 */
import { statSync } from 'node:fs';
import type { Backend, BackendReport, RouterNamespace } from '@dsec/backend';
import {
  type CompiledNetwork,
  compileNetwork,
  createDenialReporter,
  DEFAULT_SERVICES,
  type DenialReporter,
  type NetworkDenial,
  type OperatorNetwork,
  type NetworkedSandbox as ProxiedSandbox,
} from '@dsec/network';
import type { Protection } from '@dsec/protocol';
import { type Clock, DsecError, type SandboxId } from '@dsec/std';
import { createAddressPool } from './address-pool.ts';
import { checkKept } from './kept-rules.ts';
import type { DeniedAccess, NetworkedSandbox, NodeNetwork } from './network.ts';
import { createPacketJudge, type JudgedSandbox } from './packet-judge.ts';
import { createProxies, type Proxies } from './proxies.ts';

export interface NodeNetworkOptions {
  readonly backend: Pick<Backend, 'router'>;
  readonly report: Pick<BackendReport, 'slotsMax'>;
  /** What the operator maps and permits. */
  readonly operator: OperatorNetwork;
  /** IPv4 range of the sandboxes' addresses. */
  readonly pool: string;
  /** IPv4 address of the proxies, in no range that anybody needs. */
  readonly gateway: string;
  /** Absent: those of the host. */
  readonly nameServers?: readonly string[] | undefined;
  /** PEM of the authorities that vouch for names outside; absent: those of Node. */
  readonly authorities?: string | undefined;
  /** The objects of the packet filter, and where it keeps what outlives the edge; absent: there is none. */
  readonly filter?: { readonly objectsDirectory: string; readonly stateRoot: string } | undefined;
  readonly clock: Clock;
}

export const NETWORK_DEFAULTS = { pool: '100.96.0.0/12', gateway: '169.254.77.1' } as const;

/** Beside those of DNS. */
const PORTS_MAX = 14;
/** Denials of one sandbox that are told; the others are counted in the next one. */
const TOLD = { perSecond: 1, burst: 20 };

const NAME_PROXIES: Protection = {
  name: 'name-proxies',
  state: 'enforced',
  detail: 'a router without a way out; names alone, by the DNS and egress proxies of the node',
};

interface Known extends ProxiedSandbox, JudgedSandbox {
  readonly id: SandboxId;
  readonly network: CompiledNetwork;
}

/** Throws `invalid-argument` for a pool or a gateway that is none. Nothing is started before it is needed. */
export function createNodeNetwork(options: NodeNetworkOptions): NodeNetwork {
  const { operator, gateway, clock } = options;
  const findRouter = createRouterFinder(options);
  const pool = createAddressPool(options.pool, options.report.slotsMax);
  const ports = portsOf(operator);
  const sandboxes = createKnown();
  const listeners: ((denied: DeniedAccess) => void)[] = [];
  const tell = (denied: DeniedAccess) => {
    for (const listener of listeners) listener(denied);
  };
  const denials: DenialReporter = createDenialReporter({
    ...{ clock, perSandbox: TOLD },
    onDenied: (denial) => tell(accessOf(denial)),
  });
  const judge = createPacketJudge({
    ...{ objectsDirectory: undefined, stateRoot: '', ...options.filter },
    ...{ gateway, ports, clock, poolRange: pool.range, slotsMax: options.report.slotsMax },
    onDenied: tell,
  });
  const proxies: Proxies = createProxies({
    ...{ ...options, ports, denials, poolRange: pool.range },
    findSandbox: sandboxes.at,
  });
  const compile = (rules: NetworkedSandbox['rules'], version: number): CompiledNetwork => {
    const compiled = compileNetwork(rules, { version, operator });
    checkKept(rules, compiled, ports);
    return compiled;
  };
  const know = ({ key, address, version, rules }: NetworkedSandbox): Known => {
    const slot = pool.slotOf(address);
    return sandboxes.add({ id: key.id, key, address, slot, network: compile(rules, version) });
  };
  return {
    check: (rules) => void compile(rules, 1),
    linkOf: (slot) => ({ address: pool.addressOf(slot), gateway }),
    async add(sandbox, signal) {
      const router = await findRouter(signal);
      // Before anybody is let through: what the proxies have open is the filter's to close.
      judge.ensure(router);
      await proxies.ensure(router);
      judge.add(know(sandbox));
      return [NAME_PROXIES, judge.protection()];
    },
    async update(sandbox) {
      if (sandboxes.of(sandbox.key) === undefined) {
        throw new DsecError('not-found', `${sandbox.key.id} is not on the network of the node`);
      }
      const known = know(sandbox);
      // Connections are cut while both ends can still hear of it.
      proxies.revokeStale(sandbox.key.id, sandbox.address);
      judge.update(known);
    },
    async remove(key) {
      const known = sandboxes.of(key);
      if (known === undefined) return;
      sandboxes.remove(known);
      proxies.forget(key.id);
      judge.remove(known);
    },
    recovered: () => judge.recovered(),
    onDenied: (listener) => void listeners.push(listener),
    untold: (id) => denials.untold(id) + judge.untold(id),
    async close() {
      await proxies.close();
      judge.close();
    },
  };
}

/**
 * The router that the sandbox which was just made has its link to. The backend is asked only when the file
 * is not the one that it named last: after the start, and after a launcher that nobody needed had gone.
 */
function createRouterFinder({ backend, gateway }: NodeNetworkOptions) {
  let last: { readonly router: RouterNamespace; readonly file: string | undefined } | undefined;
  const fileOf = ({ namespacePath }: RouterNamespace) => {
    const found = statSync(namespacePath, { throwIfNoEntry: false });
    return found && `${found.dev}:${found.ino}`;
  };
  return async (signal?: AbortSignal): Promise<RouterNamespace> => {
    if (last?.file !== undefined && fileOf(last.router) === last.file) return last.router;
    if (backend.router === undefined) {
      throw new DsecError('unsupported', 'the backend of this node has no router');
    }
    const router = await backend.router(gateway, signal);
    last = { router, file: fileOf(router) };
    return router;
  };
}

/** By address and by id, as the proxies and the lifecycle ask. */
function createKnown() {
  const byAddress = new Map<string, Known>();
  const byId = new Map<SandboxId, Known>();
  return {
    at: (address: string) => byAddress.get(address),
    of({ id, generation }: NetworkedSandbox['key']): Known | undefined {
      const found = byId.get(id);
      return found?.key.generation === generation ? found : undefined;
    },
    add(known: Known): Known {
      byAddress.set(known.address, known);
      byId.set(known.id, known);
      return known;
    },
    remove({ id, address }: Known): void {
      byId.delete(id);
      byAddress.delete(address);
    },
  };
}

/** Where the egress proxy listens: what names are open on, by default and by the operator's services. */
function portsOf({ services = {}, withoutDefaults = false }: OperatorNetwork): number[] {
  const known = Object.values({ ...(withoutDefaults ? {} : DEFAULT_SERVICES), ...services });
  const mapped = known.flatMap(({ ports = [], mirror }) => [...ports, ...(mirror?.ports ?? [])]);
  const all = [...new Set([80, 443, ...mapped])].filter((port) => port !== 53);
  if (all.length <= PORTS_MAX) return all.sort((a, b) => a - b);
  const message = `the services of this node have ${all.length} different ports, at most ${PORTS_MAX}`;
  throw new DsecError('invalid-argument', message);
}

function accessOf({ sandbox, at, reason, name, port, suppressed }: NetworkDenial): DeniedAccess {
  return {
    ...{ sandbox: sandbox as SandboxId, at, reason, suppressed },
    ...(name === undefined || name === '' ? {} : { target: name.slice(0, 253) }),
    ...(port === undefined || port === 0 ? {} : { port }),
  };
}
