/**
 * The packet filter as a node's network uses it: opened for the router namespace that there is now, with
 * the sandboxes' own slots. A node that cannot have it goes on without, and each of its sandboxes says so.
 */
import { createHash } from 'node:crypto';
import { closeSync, openSync, rmdirSync, statfsSync, statSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { hostEndName, type RouterNamespace, type SandboxKey } from '@dsec/backend';
import { networkDeviceIndex, umount } from '@dsec/linux';
import {
  type CompiledNetwork,
  createTokenBucket,
  type DenialEvent,
  mountBpfDirectory,
  openPacketFilter,
  type PacketFilter,
  removeFilters,
  type TokenBucket,
} from '@dsec/network';
import type { Protection } from '@dsec/protocol';
import { asDsecError, type Clock, DsecError, type SandboxId } from '@dsec/std';
import type { DeniedAccess } from './network.ts';

export interface PacketJudgeOptions {
  /** Where `make -C native` put the objects; absent: there is no packet filter. */
  readonly objectsDirectory?: string | undefined;
  readonly stateRoot: string;
  readonly poolRange: string;
  readonly gateway: string;
  /** Of the egress proxy. */
  readonly ports: readonly number[];
  readonly slotsMax: number;
  readonly clock: Clock;
  readonly onDenied: (denied: DeniedAccess) => void;
}

export interface JudgedSandbox {
  readonly key: SandboxKey;
  readonly address: string;
  readonly slot: number;
  readonly network: CompiledNetwork;
}

export interface PacketJudge {
  /** Opens the filter in this namespace, unless it is there already. Never throws: see `protection`. */
  ensure(router: RouterNamespace): void;
  /** What is in force, and why not more. */
  protection(): Protection;
  /** Begins to judge, or takes up what an earlier process left. Throws what keeps it from that. */
  add(sandbox: JudgedSandbox): void;
  /** What the rules do not open is shut when it returns. */
  update(sandbox: JudgedSandbox): void;
  remove(sandbox: JudgedSandbox): void;
  /** Denials of a sandbox since the last that was told. */
  untold(id: SandboxId): number;
  /** Takes away what is in force for sandboxes that were not added. Never throws. */
  recovered(): void;
  /** The filter goes on judging, unless nothing needs it. */
  close(): void;
}

const DNS_PORT = 53;
/** More sandboxes with a link than this have no room in the tables of a filter. */
export const JUDGED_MAX = 4_096;
/** Denials of one sandbox that are told; the others are counted in the next one. */
const TOLD = { perSecond: 1, burst: 20 };

interface Open {
  readonly namespace: string;
  readonly namespaceFd: number;
  readonly router: RouterNamespace;
  readonly filter: PacketFilter;
}

interface Known extends JudgedSandbox {
  readonly generation: number;
  readonly told: TokenBucket;
  suppressed: number;
  lost: number;
}

export function createPacketJudge(options: PacketJudgeOptions): PacketJudge {
  const directory = join(options.stateRoot, 'run/bpf');
  const known = new Map<number, Known>();
  const held = createHeldFilter(options, directory, known);
  return {
    ensure: held.ensure,
    protection: () => protectionOf(held.open() !== undefined, held.fault()),
    add(sandbox) {
      const open = held.open();
      if (open !== undefined) known.set(sandbox.slot, judged(open, sandbox));
    },
    update: ({ slot, network }) => held.open()?.filter.setRules(slot + 1, network),
    remove({ slot, key }) {
      if (known.get(slot)?.generation !== generationOf(key)) return;
      known.delete(slot);
      held.open()?.filter.removeSandbox(slot + 1);
    },
    untold: (id) => [...known.values()].find(({ key }) => key.id === id)?.suppressed ?? 0,
    recovered: held.recovered,
    close() {
      held.letGo();
      if (known.size > 0) return;
      try {
        removeAll(directory);
      } catch {
        // The next start does it.
      }
    },
  };
}

/** Begins to judge a sandbox by a filter that is open. */
function judged({ filter, router, namespaceFd }: Open, sandbox: JudgedSandbox): Known {
  const { key, address, slot, network } = sandbox;
  if (slot >= JUDGED_MAX) {
    throw new DsecError('overloaded', `${JUDGED_MAX} sandboxes of a node can have a network`);
  }
  const generation = generationOf(key);
  const index = networkDeviceIndex(namespaceFd, hostEndName(address));
  filter.removeSandbox(slot + 1);
  filter.addSandbox({
    ...{ slot: slot + 1, generation },
    cgroupId: statSync(router.cgroups?.of(key) ?? '', { bigint: true }).ino,
    device: { index, address, mac: macOf(address) },
  });
  filter.setRules(slot + 1, network);
  const { eventsLost: lost } = filter.counters(slot + 1);
  return { ...sandbox, generation, told: createTokenBucket(TOLD), lost, suppressed: 0 };
}

/** The filter of the namespace that there is now, and why there is none. */
function createHeldFilter(
  options: PacketJudgeOptions,
  directory: string,
  known: ReadonlyMap<number, Known>,
) {
  let open: Open | undefined;
  let fault: DsecError | undefined;
  let isRecovered = false;

  function letGo(): void {
    if (open === undefined) return;
    open.filter.close();
    closeSync(open.namespaceFd);
    open = undefined;
  }

  function tell(event: DenialEvent): void {
    const sandbox = known.get(event.slot - 1);
    if (sandbox?.generation !== event.generation) return;
    if (!sandbox.told.take(options.clock.monotonicMs())) {
      sandbox.suppressed += 1;
      return;
    }
    const { eventsLost } = open?.filter.counters(event.slot) ?? { eventsLost: sandbox.lost };
    const suppressed = sandbox.suppressed + eventsLost - sandbox.lost;
    Object.assign(sandbox, { suppressed: 0, lost: eventsLost });
    options.onDenied({ ...accessOf(event, sandbox.key.id), suppressed });
  }

  return {
    open: () => open,
    fault: () => fault,
    letGo,
    ensure(router: RouterNamespace): void {
      const { dev, ino } = statSync(router.namespacePath);
      const namespace = `${dev}:${ino}`;
      if (open?.namespace === namespace) return;
      letGo();
      try {
        open = openFilter(options, directory, router, namespace);
        fault = undefined;
        open.filter.onDenied(tell);
        if (isRecovered) open.filter.removeUnclaimed();
      } catch (thrown) {
        fault = asDsecError(thrown);
      }
    },
    recovered(): void {
      isRecovered = true;
      try {
        if (open !== undefined) open.filter.removeUnclaimed();
        else removeAll(directory);
      } catch (thrown) {
        fault = asDsecError(thrown);
      }
    },
  };
}

function openFilter(
  options: PacketJudgeOptions,
  directory: string,
  router: RouterNamespace,
  namespace: string,
): Open {
  const { objectsDirectory, gateway, ports, poolRange, slotsMax } = options;
  const parent = router.cgroups?.parent;
  if (objectsDirectory === undefined || parent === undefined) {
    throw new DsecError('unsupported', 'the backend has no cgroups that the filter could be at');
  }
  mountBpfDirectory(directory);
  const namespaceFd = openSync(router.namespacePath, 'r');
  try {
    const filter = openPacketFilter({
      ...{ objectsDirectory, directory, cgroup: parent, namespaceFd, areDevicesOwn: true },
      gateway: {
        address: gateway,
        ports: [
          { port: DNS_PORT, protocol: 'udp' },
          { port: DNS_PORT, protocol: 'tcp' },
          ...ports.map((port) => ({ port, protocol: 'tcp' as const })),
        ],
      },
      refused: [poolRange, `${gateway}/32`, ...addressesOfHost()],
      slotsMax: Math.min(slotsMax, JUDGED_MAX) + 1,
    });
    return { namespace, namespaceFd, router, filter };
  } catch (thrown) {
    closeSync(namespaceFd);
    throw thrown;
  }
}

/** Without a bpf file system there is nothing to remove. */
function removeAll(directory: string): void {
  const BPF_FS_MAGIC = 0xcafe4a11;
  try {
    if (statfsSync(directory).type !== BPF_FS_MAGIC) return;
  } catch {
    return;
  }
  removeFilters(directory);
  umount(directory, { detach: true });
  rmdirSync(directory);
}

/** Another one for each sandbox that gets a slot, and the same one for a restarted edge. */
function generationOf({ id, generation }: SandboxKey): number {
  return createHash('sha256').update(`${id}-${generation}`).digest().readUInt32LE() || 1;
}

/** As the launcher gives it to `eth0`. */
function macOf(address: string): string {
  const bytes = address.split('.').map((byte) => Number(byte).toString(16).padStart(2, '0'));
  return ['02', 'd5', ...bytes].join(':');
}

/** No rule may lead a sandbox to its own node. */
export function addressesOfHost(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.map(({ address, family }) => `${address}/${family === 'IPv4' ? 32 : 128}`),
  );
}

function accessOf(event: DenialEvent, sandbox: SandboxId): Omit<DeniedAccess, 'suppressed'> {
  const { hook, reason, address, port, command } = event;
  const isPacket = hook === 'packet-out' || hook === 'packet-in';
  return {
    ...{ sandbox, at: isPacket ? 'packet' : 'call', reason },
    ...(address === '' ? {} : { target: address }),
    ...(port === 0 || hook === 'socket' ? {} : { port }),
    ...(command === '' ? {} : { process: command }),
  };
}

function protectionOf(isOpen: boolean, fault: DsecError | undefined): Protection {
  if (isOpen) {
    const detail = 'each packet at the router, and calls of processes before, by eBPF programs';
    return { name: 'packet-filter', state: 'enforced', detail };
  }
  const why = fault === undefined ? '' : `: ${fault.message}`;
  const detail = `packets end at the router of the node, judged by no program${why}`;
  return { name: 'packet-filter', state: 'absent', detail: detail.slice(0, 256) };
}
