import { closeSync } from 'node:fs';
import { DsecError } from '@dsec/std';
import { cString } from './byte-path.ts';
import { errnoName, syscallError } from './errno.ts';
import { addressOf, rawSyscall } from './syscall.ts';

/**
 * bpf(2), as far as packet filters need it. Structures follow `union bpf_attr` of the kernel's
 * `include/uapi/linux/bpf.h`; what a call does not name is zero. Every function blocks for microseconds,
 * except where it says otherwise.
 */

const COMMANDS = {
  mapCreate: 0,
  mapLookup: 1,
  mapUpdate: 2,
  mapDelete: 3,
  mapNextKey: 4,
  programLoad: 5,
  objectPin: 6,
  objectGet: 7,
  mapFdById: 14,
  objectInfo: 15,
  mapUpdateBatch: 26,
  mapDeleteBatch: 27,
  linkCreate: 28,
  linkDetach: 34,
} as const;

/** `enum bpf_map_type`. */
export const BPF_MAP_TYPES = {
  hash: 1,
  array: 2,
  lpmTrie: 11,
  arrayOfMaps: 12,
  ringBuffer: 27,
} as const;

/** `enum bpf_prog_type`. */
export const BPF_PROGRAM_TYPES = { schedCls: 3, cgroupSock: 9, cgroupSockAddr: 18 } as const;

/** `enum bpf_attach_type`. */
export const BPF_ATTACH_TYPES = {
  cgroupSockCreate: 2,
  cgroupBind4: 8,
  cgroupBind6: 9,
  cgroupConnect4: 10,
  cgroupConnect6: 11,
  cgroupSendmsg4: 14,
  cgroupSendmsg6: 15,
  tcxIngress: 46,
  tcxEgress: 47,
} as const;

export interface BpfMapSpec {
  readonly name: string;
  /** Of `BPF_MAP_TYPES`. */
  readonly type: number;
  readonly keyBytes: number;
  readonly valueBytes: number;
  readonly entriesMax: number;
  readonly flags: number;
  /** For an array of maps: what its maps look like. */
  readonly innerMapFd?: number;
}

export interface BpfProgramSpec {
  readonly name: string;
  readonly type: number;
  readonly attachType: number;
  readonly license: string;
  /** Eight bytes each, maps already put in as descriptors. */
  readonly instructions: Uint8Array;
}

/** The kernel cuts names here. */
const NAME_BYTES_MAX = 15;
const ATTR_BYTES = 128;
const LOG_BYTES_MAX = 1 << 20;
const LOG_SHOWN_BYTES = 2_000;

/** Makes a map and returns its descriptor. */
export function createBpfMap(spec: BpfMapSpec): number {
  const attr = newAttr();
  attr.writeUInt32LE(spec.type, 0);
  attr.writeUInt32LE(spec.keyBytes, 4);
  attr.writeUInt32LE(spec.valueBytes, 8);
  attr.writeUInt32LE(spec.entriesMax, 12);
  attr.writeUInt32LE(spec.flags, 16);
  attr.writeUInt32LE(spec.innerMapFd ?? 0, 20);
  attr.write(spec.name.slice(0, NAME_BYTES_MAX), 28, 'latin1');
  return call('mapCreate', attr, `map ${spec.name}`);
}

/** Sets an entry. An array of maps takes a descriptor as its value, and waits for a grace period. */
export function updateBpfMap(mapFd: number, key: Uint8Array, value: Uint8Array): void {
  call('mapUpdate', elementAttr(mapFd, key, value), 'map entry');
}

/** Removes an entry. Returns whether there was one. */
export function deleteFromBpfMap(mapFd: number, key: Uint8Array): boolean {
  return unlessMissing(tryCall('mapDelete', elementAttr(mapFd, key, null)), 'map delete');
}

/** Fills `value` with the entry of a key. Returns whether there is one. */
export function lookUpInBpfMap(mapFd: number, key: Uint8Array, value: Uint8Array): boolean {
  return unlessMissing(tryCall('mapLookup', elementAttr(mapFd, key, value)), 'map lookup');
}

/**
 * All keys of a map, at most `countMax`. Keys that come and go meanwhile may be missing; a key that goes
 * makes the kernel begin anew, hence the limit.
 */
export function keysOfBpfMap(mapFd: number, keyBytes: number, countMax: number): Buffer[] {
  const keys: Buffer[] = [];
  let last: Buffer | null = null;
  while (keys.length < countMax) {
    const next = Buffer.alloc(keyBytes);
    if (!unlessMissing(tryCall('mapNextKey', elementAttr(mapFd, last, next)), 'map keys')) break;
    keys.push(next);
    last = next;
  }
  return keys;
}

/**
 * Sets `count` entries whose keys and values lie one after another. Stops at the first failure, so that
 * some may be set when it throws. Into an array of maps: one grace period for all.
 */
export function updateBpfMapBatch(
  mapFd: number,
  keys: Uint8Array,
  values: Uint8Array,
  count: number,
): void {
  if (count > 0) call('mapUpdateBatch', batchAttr(mapFd, keys, values, count), 'map entries');
}

/** Removes `count` entries, all of which must exist. */
export function deleteBpfMapBatch(mapFd: number, keys: Uint8Array, count: number): void {
  if (count > 0) call('mapDeleteBatch', batchAttr(mapFd, keys, null, count), 'map entries');
}

/** A descriptor of the map with this id, which is what a lookup in an array of maps gives. */
export function openBpfMapById(id: number): number {
  const attr = newAttr();
  attr.writeUInt32LE(id, 0);
  return call('mapFdById', attr, `map ${id}`);
}

/**
 * Loads a program and returns its descriptor. `invalid-argument`: the kernel's verifier refuses it; the
 * end of what it says is in the message.
 */
export function loadBpfProgram(spec: BpfProgramSpec): number {
  const license = cString(spec.license);
  const attr = newAttr();
  attr.writeUInt32LE(spec.type, 0);
  attr.writeUInt32LE(spec.instructions.length / 8, 4);
  attr.writeBigUInt64LE(addressOf(spec.instructions), 8);
  attr.writeBigUInt64LE(addressOf(license), 16);
  attr.write(spec.name.slice(0, NAME_BYTES_MAX), 48, 'latin1');
  attr.writeUInt32LE(spec.attachType, 68);
  const loaded = tryCall('programLoad', attr);
  if (loaded >= 0) return loaded;
  // Once more for the log, which costs more than the load itself.
  const log = Buffer.alloc(LOG_BYTES_MAX);
  attr.writeUInt32LE(1, 24);
  attr.writeUInt32LE(log.length, 28);
  attr.writeBigUInt64LE(addressOf(log), 32);
  const again = tryCall('programLoad', attr);
  if (again >= 0) return again;
  const end = log.indexOf(0);
  const text = log.toString('latin1', Math.max(0, end - LOG_SHOWN_BYTES), end).trim();
  throw syscallError('bpf', -loaded, `program ${spec.name}${text === '' ? '' : `: ${text}`}`);
}

/** Attaches a program to a cgroup directory or, for tcx, to a device of the thread's network namespace. */
export function createBpfLink(spec: {
  readonly programFd: number;
  /** The descriptor of a cgroup's directory, or the index of a device. */
  readonly target: number;
  readonly attachType: number;
}): number {
  const attr = newAttr();
  attr.writeUInt32LE(spec.programFd, 0);
  attr.writeUInt32LE(spec.target, 4);
  attr.writeUInt32LE(spec.attachType, 8);
  return call('linkCreate', attr, 'link');
}

/**
 * Takes a program away from where it is attached, at once: a link whose last descriptor or name goes is let
 * go of some time later. What is already detached stays so.
 */
export function detachBpfLink(linkFd: number): void {
  const attr = newAttr();
  attr.writeUInt32LE(linkFd, 0);
  const result = tryCall('linkDetach', attr);
  const ENOLINK = 67;
  if (result < 0 && result !== -ENOLINK) throw syscallError('bpf', -result, 'link detach');
}

/** Gives a map, program or link a name in a bpf file system, which keeps it when this process ends. */
export function pinBpfObject(fd: number, path: string): void {
  const name = cString(path);
  const attr = newAttr();
  attr.writeBigUInt64LE(addressOf(name), 0);
  attr.writeUInt32LE(fd, 8);
  call('objectPin', attr, path);
}

/** A descriptor of a pinned object. `not-found`: nothing has this name. */
export function openBpfObject(path: string): number {
  const name = cString(path);
  const attr = newAttr();
  attr.writeBigUInt64LE(addressOf(name), 0);
  return call('objectGet', attr, path);
}

export interface BpfLinkInfo {
  readonly id: number;
  readonly programId: number;
  /** The device of a tcx link (0 when it is gone), for a cgroup link the lower half of its id. */
  readonly target: number;
  /** The id of the cgroup of a cgroup link. */
  readonly cgroupId: bigint;
}

/** What a link ties together (`struct bpf_link_info`). */
export function readBpfLink(linkFd: number): BpfLinkInfo {
  const info = objectInfo(linkFd, 64);
  return {
    id: info.readUInt32LE(4),
    programId: info.readUInt32LE(8),
    target: info.readUInt32LE(16),
    cgroupId: info.readBigUInt64LE(16),
  };
}

/** The id of a loaded program (`struct bpf_prog_info`). */
export function bpfProgramId(programFd: number): number {
  return objectInfo(programFd, 64).readUInt32LE(4);
}

/**
 * Why bpf(2) cannot be used here, as a typed `unsupported`; undefined if it can. Makes a map and drops
 * it, since a privilege alone does not tell: a security module or a container's filter may refuse.
 */
export function bpfRefusal(): DsecError | undefined {
  const attr = newAttr();
  attr.writeUInt32LE(BPF_MAP_TYPES.lpmTrie, 0);
  attr.writeUInt32LE(8, 4);
  attr.writeUInt32LE(4, 8);
  attr.writeUInt32LE(1, 12);
  attr.writeUInt32LE(1, 16);
  const fd = tryCall('mapCreate', attr);
  if (fd >= 0) {
    closeSync(fd);
    return undefined;
  }
  const name = errnoName(-fd);
  const why =
    name === 'ENOSYS'
      ? 'the kernel has no bpf(2)'
      : 'bpf(2) needs root, or CAP_BPF and CAP_NET_ADMIN';
  return new DsecError('unsupported', `no packet filter: ${why} (${name})`, {
    details: { syscall: 'bpf', errno: -fd, errnoName: name },
  });
}

function objectInfo(fd: number, bytes: number): Buffer {
  const info = Buffer.alloc(bytes);
  const attr = newAttr();
  attr.writeUInt32LE(fd, 0);
  attr.writeUInt32LE(info.length, 4);
  attr.writeBigUInt64LE(addressOf(info), 8);
  call('objectInfo', attr, 'object info');
  return info;
}

function elementAttr(mapFd: number, key: Uint8Array | null, value: Uint8Array | null): Buffer {
  const attr = newAttr();
  attr.writeUInt32LE(mapFd, 0);
  if (key !== null) attr.writeBigUInt64LE(addressOf(key), 8);
  if (value !== null) attr.writeBigUInt64LE(addressOf(value), 16);
  return attr;
}

function batchAttr(
  mapFd: number,
  keys: Uint8Array,
  values: Uint8Array | null,
  count: number,
): Buffer {
  const attr = newAttr();
  attr.writeBigUInt64LE(addressOf(keys), 16);
  if (values !== null) attr.writeBigUInt64LE(addressOf(values), 24);
  attr.writeUInt32LE(count, 32);
  attr.writeUInt32LE(mapFd, 36);
  return attr;
}

function newAttr(): Buffer {
  return Buffer.alloc(ATTR_BYTES);
}

function tryCall(command: keyof typeof COMMANDS, attr: Buffer): number {
  return rawSyscall('bpf', COMMANDS[command], attr, attr.length);
}

function call(command: keyof typeof COMMANDS, attr: Buffer, subject: string): number {
  const result = tryCall(command, attr);
  if (result < 0) throw syscallError('bpf', -result, subject);
  return result;
}

function unlessMissing(result: number, subject: string): boolean {
  const ENOENT = 2;
  if (result === -ENOENT) return false;
  if (result < 0) throw syscallError('bpf', -result, subject);
  return true;
}
