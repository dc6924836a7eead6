import { MOUNT_BITS, type MountFields, PROC_PARTS } from '@dsec/protocol';
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

/** Every path that is covered where the kernel has it. */
export const COVERED: readonly string[] = [...MASKED, ...GUARDED];

export interface BoundFile {
  /** Below the state root. */
  readonly source: string;
  readonly target: string;
}

export const shmBytesOf = (memoryBytes: number): number =>
  Math.min(SHM.bytesMax, Math.floor(memoryBytes / SHM.shareOfMemory));

/**
 * In order: what covers parts of procfs comes behind it, and files over parts of it behind those.
 *
 * @param present Those of `COVERED` that this kernel has.
 */
export function sandboxMounts(
  slot: number,
  memoryBytes: number,
  present: ReadonlySet<string>,
  files: readonly BoundFile[],
): MountFields[] {
  const { nosuid, nodev, noexec, readonly } = MOUNT_BITS;
  const flags = nosuid | nodev | noexec;
  const at = (kind: MountFields['kind'], target: string, rest: Partial<MountFields> = {}) => ({
    ...{ kind, target: Buffer.from(target), flags },
    ...rest,
  });
  const there = (paths: readonly string[]) => paths.filter((path) => present.has(path));
  const terminals = ['mode=620', `gid=${rangeBase(slot) + TTY_GROUP}`];
  const shared = {
    sizeBytes: shmBytesOf(memoryBytes),
    inodesMax: SHM.inodesMax,
    mode: 0o1777,
  };
  return [
    at('proc', '/proc'),
    at('dev', '/dev'),
    at('devpts', '/dev/pts', {
      flags: nosuid | noexec,
      options: terminals.map((option) => Buffer.from(option)),
    }),
    at('tmpfs', '/dev/shm', shared),
    at('mqueue', '/dev/mqueue'),
    at('sysfs', '/sys'),
    ...there(MASKED).map((path) => at('mask', path)),
    ...there(GUARDED).map((path) => at('readonly', path)),
    ...files.map(({ source, target }) =>
      at('bind', target, { source: Buffer.from(source), flags: flags | readonly }),
    ),
  ];
}
