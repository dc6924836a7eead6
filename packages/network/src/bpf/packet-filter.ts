import { bpfRefusal, updateBpfMap } from '@dsec/linux';
import { DsecError } from '@dsec/std';
import { parseAddress, parsePrefix } from '../rules/address.ts';
import type { CompiledNetwork } from '../rules/compiled.ts';
import { removeFilters } from './bpf-directory.ts';
import { cgroupLevelOf } from './cgroup-level.ts';
import { createDenialReader, type DenialListener } from './denials.ts';
import type { DnsAddress } from './grants.ts';
import { createKernelSlots } from './kernel-slots.ts';
import {
  type DenialCounters,
  encodeRefusedKey,
  encodeSettings,
  GATEWAY_PORTS_MAX,
  type GatewayPort,
  uint32,
} from './layout.ts';
import { attachHooks } from './links.ts';
import { type LoadedObjects, loadObjects } from './objects.ts';
import { createFilteredSandboxes, type FilteredSandbox } from './sandboxes.ts';
import { createRuleTables, mapOf, syncKeys } from './tables.ts';

export interface PacketFilterOptions {
  /** Where `make -C native` put the objects. */
  readonly objectsDirectory: string;
  /** A bpf file system of this edge (`mountBpfDirectory`); what is pinned there outlives the process. */
  readonly directory: string;
  /** The common parent, in cgroup v2, of the cgroups that sandboxes have. Nothing else lives in it. */
  readonly cgroup: string;
  /** Of a sandbox's own cgroup; without it, one deeper than `cgroup` is (`cgroupLevelOf`). */
  readonly cgroupLevel?: number;
  /** The network namespace that the host ends of the sandboxes' devices are in. */
  readonly namespaceFd: number;
  /**
   * A device of the namespace is made for one sandbox and goes with it, so its programs need not be taken
   * away before: then nothing waits for the kernel's grace periods, tens of milliseconds for each sandbox.
   */
  readonly areDevicesOwn?: boolean;
  /** Where the proxies listen. Reached by sandboxes with rules about names, at these ports and no others. */
  readonly gateway: { readonly address: string; readonly ports: readonly GatewayPort[] };
  /**
   * Ranges that no rule opens, beside those that are never a host elsewhere (`NEVER_OPEN`): of the
   * sandboxes, and every address that the host and the router themselves have.
   */
  readonly refused: readonly string[];
  /** Slots are 1 to this less one. */
  readonly slotsMax?: number;
  /** Address ranges of one sandbox, and addresses of dedicated names, together. */
  readonly rulesMax?: number;
  /** Of one sandbox: for calls and for packets, each. More are only counted. */
  readonly eventsPerSecond?: number;
}

const DEFAULTS = { slotsMax: 4_096, rulesMax: 1_024, eventsPerSecond: 20 } as const;
const REFUSED_MAX = 1_024;

/** This host, its links with the metadata of clouds, groups, and IPv6 that is IPv4 in disguise. */
export const NEVER_OPEN: readonly string[] = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/3',
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2002::/16',
  'fe80::/10',
  'ff00::/8',
];

/**
 * The packet filter of a node: what a sandbox sends is judged at the host's end of its device, and calls
 * of its processes where they are made. All functions are synchronous system calls. A sandbox without
 * rules reaches its own loopback and nothing else.
 */
export interface PacketFilter {
  /**
   * Begins to judge a sandbox, or finds that an earlier process left it judged; then the rules stay in
   * force until the next `setRules`. Returns whether it was found. `already-exists`: the slot is taken.
   */
  addSandbox(sandbox: FilteredSandbox): boolean;
  /**
   * Replaces all rules at once. What the new ones do not open is shut when it returns, for open flows
   * too. `conflict`: rules of a higher version are in force.
   */
  setRules(slot: number, network: CompiledNetwork): void;
  /**
   * Opens addresses of dedicated names until they expire. Flows that began in time go on after it, as
   * long as the rule stands. `conflict`: other rules than those are in force. `quota-exceeded`.
   */
  addDnsAddresses(slot: number, version: number, addresses: readonly DnsAddress[]): void;
  /** Shuts everything and frees the slot. A slot that is free is left alone. */
  removeSandbox(slot: number): void;
  /**
   * For a restarted edge, when it has added every sandbox of its journal: shuts and removes all else that
   * is pinned, other builds of the filter included. Returns how many sandboxes went.
   */
  removeUnclaimed(): number;
  /** Slot 0: of what belongs to no known sandbox. */
  counters(slot: number): DenialCounters;
  /** Is told of denials as long as the returned function is not called. */
  onDenied(listener: DenialListener): () => void;
  /** Lets go of the maps. The filter goes on judging by what is in them. */
  close(): void;
}

/** `unsupported`: bpf(2) is not permitted here, with the reason. `not-found`: the objects are not built. */
export function openPacketFilter(options: PacketFilterOptions): PacketFilter {
  const refusal = bpfRefusal();
  if (refusal !== undefined) throw refusal;
  const sizes = { ...DEFAULTS, ...options };
  // Of two tables at the moment of a change.
  const objects = loadObjects({ ...sizes, rulesMax: 2 * sizes.rulesMax });
  try {
    configure(objects, options, sizes.eventsPerSecond);
    attachHooks(objects, options.cgroup);
    return filterOf(objects, sizes);
  } catch (thrown) {
    objects.close();
    throw thrown;
  }
}

function configure(objects: LoadedObjects, options: PacketFilterOptions, perSecond: number): void {
  const { gateway } = options;
  const refused = [...NEVER_OPEN, ...options.refused];
  const address = parseAddress(gateway.address);
  if (address?.family !== 4 || gateway.ports.length > GATEWAY_PORTS_MAX) {
    const limit = `at most ${GATEWAY_PORTS_MAX} ports`;
    throw new DsecError('invalid-argument', `the gateway needs an IPv4 address and ${limit}`);
  }
  if (refused.length > REFUSED_MAX) throw new DsecError('too-large', 'too many refused ranges');
  const keys = refused.map((text) => encodeRefusedKey(parsePrefix(text, 'refused')));
  syncKeys(mapOf(objects, 'refused').fd, keys, uint32(1), REFUSED_MAX);
  const settings = encodeSettings({
    gateway: address,
    cgroupLevel: options.cgroupLevel ?? cgroupLevelOf(options.cgroup) + 1,
    eventsPerSecond: perSecond,
    ports: gateway.ports,
  });
  updateBpfMap(mapOf(objects, 'settings').fd, uint32(0), settings);
}

function filterOf(
  objects: LoadedObjects,
  sizes: PacketFilterOptions & { readonly slotsMax: number; readonly rulesMax: number },
): PacketFilter {
  const kernel = createKernelSlots(objects);
  const tables = createRuleTables(objects);
  const reader = createDenialReader(objects);
  const sandboxes = createFilteredSandboxes({ ...sizes, objects, kernel, tables });
  return {
    addSandbox: sandboxes.add,
    setRules: (slot, network) => sandboxes.rulesOf(slot).setRules(network),
    addDnsAddresses: (slot, version, addresses) =>
      sandboxes.rulesOf(slot).addDnsAddresses(version, addresses),
    removeSandbox: sandboxes.remove,
    removeUnclaimed() {
      const freed = sandboxes.removeUnclaimed();
      removeFilters(sizes.directory, objects.directory);
      return freed;
    },
    counters: kernel.counters,
    onDenied: reader.onDenied,
    close() {
      reader.close();
      objects.close();
    },
  };
}
