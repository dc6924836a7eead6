import { DsecError } from '@dsec/std';
import { type Address, parseAddress } from '../rules/address.ts';
import type { KernelSlots, Places } from './kernel-slots.ts';
import { FREE_SLOT, type Owner, SLOT_UNKNOWN, type SlotRecord } from './layout.ts';
import { attachPackets, detachPackets, filterPackets, slotsWithPackets } from './links.ts';
import type { LoadedObjects } from './objects.ts';
import { createSandboxSlot, type SandboxSlot } from './sandbox-slot.ts';
import type { RuleTables } from './tables.ts';

export interface FilteredSandbox {
  /** From 1; nobody else has it. */
  readonly slot: number;
  /** From 1; another one for each sandbox that gets the slot. */
  readonly generation: number;
  /** The inode number of its cgroup directory. */
  readonly cgroupId: bigint;
  /** Without one, nothing but its own loopback is within reach. */
  readonly device?: {
    /** Of the host's end, in the namespace of the filter. */
    readonly index: number;
    readonly address: string;
    readonly address6?: string;
    /** Of the sandbox's end: frames from another one are dropped. */
    readonly mac?: string;
  };
}

/** The sandboxes that this process judges, as `PacketFilter` promises. */
export interface FilteredSandboxes {
  add(sandbox: FilteredSandbox): boolean;
  /** `not-found`: the slot is free. */
  rulesOf(slot: number): SandboxSlot;
  remove(slot: number): void;
  removeUnclaimed(): number;
}

export interface SandboxSeams {
  readonly objects: LoadedObjects;
  readonly kernel: KernelSlots;
  readonly tables: RuleTables;
  readonly namespaceFd: number;
  readonly slotsMax: number;
  readonly areDevicesOwn?: boolean | undefined;
  /** Of one sandbox. */
  readonly rulesMax: number;
}

interface Known {
  readonly owner: Owner;
  readonly places: Places;
  readonly rules: SandboxSlot;
}

export function createFilteredSandboxes(seams: SandboxSeams): FilteredSandboxes {
  const { objects, kernel, tables, slotsMax } = seams;
  const known = new Map<number, Known>();

  function add(sandbox: FilteredSandbox): boolean {
    const { slot, generation, cgroupId, device } = sandbox;
    checkSlot(slot, slotsMax);
    if (known.has(slot)) throw new DsecError('already-exists', `slot ${slot} is taken`);
    const wanted = recordOf(sandbox);
    const found = kernel.find(slot, wanted);
    const owner = { slot, generation };
    const places = { cgroupId, deviceIndex: device?.index };
    known.set(slot, { owner, places, rules: slotOf(slot, found ?? wanted) });
    try {
      if (found === undefined) occupy(slot, wanted);
      kernel.point(owner, places);
      judgePackets(seams, slot, device?.index);
    } catch (thrown) {
      remove(slot);
      throw thrown;
    }
    return found !== undefined;
  }

  function slotOf(slot: number, record: SlotRecord): SandboxSlot {
    return createSandboxSlot(record, {
      slot,
      tables,
      entriesMax: seams.rulesMax,
      store: (next) => kernel.store(slot, next),
      nowNs: () => process.hrtime.bigint(),
    });
  }

  /** Nothing of who had the slot before is left. */
  function occupy(slot: number, record: SlotRecord): void {
    kernel.free(slot);
    tables.keepOnly(slot, 0);
    kernel.resetCounters(slot);
    kernel.store(slot, record);
  }

  function remove(slot: number): void {
    const sandbox = known.get(slot);
    if (sandbox === undefined) return;
    kernel.free(slot);
    kernel.unpoint(sandbox.owner, sandbox.places);
    detachPackets(objects.directory, slot);
    tables.keepOnly(slot, 0);
    known.delete(slot);
  }

  function rulesOf(slot: number): SandboxSlot {
    const found = known.get(slot);
    if (found === undefined) throw new DsecError('not-found', `no sandbox has slot ${slot}`);
    return found.rules;
  }

  function removeUnclaimed(): number {
    const freed = kernel.sweep(
      ({ slot, generation }) => known.get(slot)?.owner.generation === generation,
    );
    for (const slot of slotsWithPackets(objects.directory)) {
      if (known.get(slot)?.places.deviceIndex === undefined) detachPackets(objects.directory, slot);
    }
    return freed;
  }
  return { add, rulesOf, remove, removeUnclaimed };
}

function judgePackets(seams: SandboxSeams, slot: number, index: number | undefined): void {
  const { objects, namespaceFd, areDevicesOwn } = seams;
  if (index === undefined) detachPackets(objects.directory, slot);
  else if (areDevicesOwn === true) filterPackets(objects, { namespaceFd, index });
  else attachPackets(objects, slot, { namespaceFd, index });
}

function checkSlot(slot: number, slotsMax: number): void {
  if (Number.isInteger(slot) && slot > SLOT_UNKNOWN && slot < slotsMax) return;
  throw new DsecError('invalid-argument', `slot ${slot} is not in 1 to ${slotsMax - 1}`);
}

function recordOf({ generation, device }: FilteredSandbox): SlotRecord {
  if (!Number.isInteger(generation) || generation < 1 || generation > 0xffff_ffff) {
    throw new DsecError('invalid-argument', `${generation} is no generation`);
  }
  return {
    ...FREE_SLOT,
    generation,
    ipv4: device && addressIn(4, device.address),
    ipv6: device?.address6 === undefined ? undefined : addressIn(6, device.address6),
    mac: device?.mac === undefined ? undefined : macBytes(device.mac),
  };
}

function addressIn(family: 4 | 6, text: string): Address {
  const address = parseAddress(text);
  if (address?.family === family) return address;
  throw new DsecError('invalid-argument', `${text} is no IPv${family} address`);
}

function macBytes(text: string): Buffer {
  if (/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(text))
    return Buffer.from(text.replaceAll(':', ''), 'hex');
  throw new DsecError('invalid-argument', `${text} is no address of a device`);
}
