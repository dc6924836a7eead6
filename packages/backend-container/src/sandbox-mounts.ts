import { keepEncoded, MOUNT_BITS, type MountFields, PROC_PARTS, SPAWN_ITEMS } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import { rangeBase } from './id-range.ts';

/** The group that owns terminals, by its number in nearly every distribution. */
const TTY_GROUP = 5;
/** Of /dev/shm; it counts as memory of the sandbox. */
const SHM = { shareOfMemory: 8, bytesMax: 64 * MIB, inodesMax: 4096 };

/** Beside what the launcher insists on: in /sys, what tells of the host's disks and firmware. */
const MASKED = [
  ...PROC_PARTS.masked.map((name) => `/proc/${name}`),
  ...['/sys/firmware', '/sys/devices/virtual/powercap', '/sys/devices/virtual/block'],
];
const GUARDED = PROC_PARTS.guarded.map((name) => `/proc/${name}`);

const { nosuid, nodev, noexec, readonly } = MOUNT_BITS;
const HARMLESS = nosuid | nodev | noexec;

const mountAt = (
  kind: MountFields['kind'],
  target: string,
  rest: Partial<MountFields> = {},
): MountFields => ({ kind, target: Buffer.from(target), flags: HARMLESS, ...rest });

/** The same in many sandboxes: encoded once. */
const sharedAt = (...mount: Parameters<typeof mountAt>): MountFields =>
  keepEncoded(SPAWN_ITEMS.mount, mountAt(...mount));

const FIRST = [sharedAt('proc', '/proc'), sharedAt('dev', '/dev')];
const MQUEUE = sharedAt('mqueue', '/dev/mqueue');
const SYSFS = sharedAt('sysfs', '/sys');

/** What covers those parts of /proc and /sys that this kernel has; the same for every sandbox of a node. */
export function coverMounts(isThere: (path: string) => boolean): readonly MountFields[] {
  return [
    ...MASKED.filter(isThere).map((path) => sharedAt('mask', path)),
    ...GUARDED.filter(isThere).map((path) => sharedAt('readonly', path)),
  ];
}

export interface BoundFile {
  /** Below the state root. */
  readonly source: string;
  readonly target: string;
}

export const shmBytesOf = (memoryBytes: number): number =>
  Math.min(SHM.bytesMax, Math.floor(memoryBytes / SHM.shareOfMemory));

/** A file of the node over one of a sandbox's. */
export const boundFile = ({ source, target }: BoundFile): MountFields =>
  mountAt('bind', target, { source: Buffer.from(source), flags: HARMLESS | readonly });

/** As `boundFile`, over a file of many sandboxes. */
export const sharedFile = (file: BoundFile): MountFields =>
  keepEncoded(SPAWN_ITEMS.mount, boundFile(file));

export const shmMount = (memoryBytes: number): MountFields =>
  sharedAt('tmpfs', '/dev/shm', {
    sizeBytes: shmBytesOf(memoryBytes),
    inodesMax: SHM.inodesMax,
    mode: 0o1777,
  });

/** In order: what covers parts of procfs comes behind it, and files over parts of it behind those. */
export function sandboxMounts(
  slot: number,
  shm: MountFields,
  covers: readonly MountFields[],
  files: readonly MountFields[],
): MountFields[] {
  const terminals = ['mode=620', `gid=${rangeBase(slot) + TTY_GROUP}`];
  const devpts = mountAt('devpts', '/dev/pts', {
    flags: nosuid | noexec,
    options: terminals.map((option) => Buffer.from(option)),
  });
  return [...FIRST, devpts, shm, MQUEUE, SYSFS, ...covers, ...files];
}
