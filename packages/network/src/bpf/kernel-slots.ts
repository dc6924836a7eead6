import { deleteFromBpfMap, keysOfBpfMap, lookUpInBpfMap, updateBpfMap } from '@dsec/linux';
import {
  COUNTERS_BYTES,
  type DenialCounters,
  decodeCounters,
  decodeOwner,
  decodeSlot,
  encodeOwner,
  encodeSlot,
  FREE_SLOT,
  isSameOwner,
  OWNER_BYTES,
  type Owner,
  SLOT_BYTES,
  type SlotRecord,
  uint32,
} from './layout.ts';
import type { LoadedMap, LoadedObjects } from './objects.ts';
import { mapOf } from './tables.ts';

/** The maps that say which sandbox a slot, a cgroup and a device belong to. */
export interface KernelSlots {
  /** The record in force for this very sandbox with these addresses, from an earlier process. */
  find(slot: number, record: SlotRecord): SlotRecord | undefined;
  /** Puts a record into force, in one step as far as a reader cares: see `struct slot`. */
  store(slot: number, record: SlotRecord): void;
  /** What still points at the slot denies from now on. */
  free(slot: number): void;
  /** Says whose cgroup and device these are. */
  point(owner: Owner, places: Places): void;
  /** Forgets a cgroup and a device, unless somebody else has them by now. */
  unpoint(owner: Owner, places: Places): void;
  resetCounters(slot: number): void;
  counters(slot: number): DenialCounters;
  /** Frees every slot and forgets every cgroup and device of which `isClaimed` is not true. */
  sweep(isClaimed: (owner: Owner) => boolean): number;
}

export interface Places {
  readonly cgroupId?: bigint | undefined;
  readonly deviceIndex?: number | undefined;
}

export function createKernelSlots(objects: LoadedObjects): KernelSlots {
  const slots = mapOf(objects, 'slots');
  const counts = mapOf(objects, 'counters');
  const cgroups = mapOf(objects, 'cgroups');
  const devices = mapOf(objects, 'devices');

  function keysOf({ cgroupId, deviceIndex }: Places): [LoadedMap, Buffer][] {
    const keys: [LoadedMap, Buffer][] = [];
    if (cgroupId !== undefined) keys.push([cgroups, uint64(cgroupId)]);
    if (deviceIndex !== undefined) keys.push([devices, uint32(deviceIndex)]);
    return keys;
  }

  function bytesOf(slot: number): Buffer {
    const bytes = Buffer.alloc(SLOT_BYTES);
    lookUpInBpfMap(slots.fd, uint32(slot), bytes);
    return bytes;
  }

  function find(slot: number, record: SlotRecord): SlotRecord | undefined {
    const bytes = bytesOf(slot);
    if (!isSameOwner(bytes, encodeSlot(record))) return undefined;
    return { ...record, ...decodeSlot(bytes) };
  }

  function store(slot: number, record: SlotRecord): void {
    updateBpfMap(slots.fd, uint32(slot), encodeSlot(record));
  }

  function point(owner: Owner, places: Places): void {
    for (const [map, key] of keysOf(places)) updateBpfMap(map.fd, key, encodeOwner(owner));
  }

  function unpoint(owner: Owner, places: Places): void {
    const value = Buffer.alloc(OWNER_BYTES);
    for (const [map, key] of keysOf(places)) {
      const isOurs = lookUpInBpfMap(map.fd, key, value) && value.equals(encodeOwner(owner));
      if (isOurs) deleteFromBpfMap(map.fd, key);
    }
  }

  return {
    find,
    store,
    free: (slot) => store(slot, FREE_SLOT),
    point,
    unpoint,
    resetCounters: (slot) => updateBpfMap(counts.fd, uint32(slot), Buffer.alloc(COUNTERS_BYTES)),
    counters(slot) {
      const bytes = Buffer.alloc(COUNTERS_BYTES);
      lookUpInBpfMap(counts.fd, uint32(slot), bytes);
      return decodeCounters(bytes);
    },
    sweep(isClaimed) {
      for (const map of [cgroups, devices]) forget(map, isClaimed);
      let freed = 0;
      for (let slot = 0; slot < slots.entriesMax; slot += 1) {
        const { generation } = decodeSlot(bytesOf(slot));
        if (generation === 0 || isClaimed({ slot, generation })) continue;
        store(slot, FREE_SLOT);
        freed += 1;
      }
      return freed;
    },
  };
}

/** Removes from a map of owners those that are not claimed. */
function forget(map: LoadedMap, isClaimed: (owner: Owner) => boolean): void {
  const value = Buffer.alloc(OWNER_BYTES);
  for (const key of keysOfBpfMap(map.fd, map.keyBytes, map.entriesMax)) {
    const isThere = lookUpInBpfMap(map.fd, key, value);
    if (isThere && !isClaimed(decodeOwner(value))) deleteFromBpfMap(map.fd, key);
  }
}

function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}
