/** What a launcher needs to know to start an object: the message `spawn` and its parts. */
import { KIB } from '@dsec/std';
import { PATH_BYTES_MAX } from './aether-frames.ts';
import {
  Assignment,
  assignments,
  Cgroup,
  LAYERS_MAX,
  layerId,
  objectKey,
  shortText,
  statePath,
} from './launcher-fields.ts';
import {
  bool,
  bytes,
  choice,
  i32,
  listOf,
  type MessageValue,
  message,
  optional,
  path,
  pathList,
  struct,
  u8,
  u16,
  u32,
  u64,
} from './wire-fields.ts';

/**
 * First id of the ranges given to sandboxes: above those that other container runtimes hand out (THREATS
 * B7).
 */
export const SANDBOX_ID_FIRST = 2 ** 30;
export const SANDBOX_ID_COUNT = 65_536;

/** Bits of `namespaces`: which ones are new. The launcher insists on all of them for a sandbox. */
export const NAMESPACE_BITS = {
  mount: 1,
  pid: 2,
  uts: 4,
  ipc: 8,
  net: 16,
  cgroup: 32,
  user: 64,
} as const;

/** Bits of a mount's `flags`. */
export const MOUNT_BITS = {
  readonly: 1,
  nosuid: 2,
  nodev: 4,
  noexec: 8,
  /** Of a `mask` or `readonly`: made for a policy, and so for `remount` to remove. */
  policy: 16,
} as const;

/**
 * Parts of /proc that the launcher wants covered where the kernel has them, unless procfs shows processes
 * alone (`subset=pid`): `masked` by a mask, `guarded` by a mask or `readonly`, `given` by a mask or a bind.
 */
export const PROC_PARTS = {
  masked: [
    ...[
      'acpi',
      'asound',
      'buddyinfo',
      'diskstats',
      'interrupts',
      'kcore',
      'key-users',
      'keys',
      'kmsg',
    ],
    ...['kpagecgroup', 'kpagecount', 'kpageflags', 'locks', 'modules', 'partitions', 'pressure'],
    ...['sched_debug', 'schedstat', 'scsi', 'softirqs', 'timer_list', 'vmallocinfo', 'vmstat'],
    'zoneinfo',
  ],
  guarded: ['bus', 'fs', 'irq', 'sys', 'sysrq-trigger'],
  given: ['loadavg', 'meminfo', 'stat'],
} as const;

const IdMap = message('id-map', {
  inside: u32(1),
  outside: u32(2),
  count: u32(3, { minimum: 1, maximum: SANDBOX_ID_COUNT }),
});

/**
 * The writable layer; both limits hold whatever the driver, or the spawn fails. `tmpfs` is memory, charged to
 * the sandbox. `image` is an ext4 file system in a sparse file below `uppers/`, so that it survives in the
 * page cache and on disk, not in memory limits; limits are rounded up to what ext4 can have (4 MiB at least).
 * `btrfs` is a subvolume with a quota of its own; the kernel has no inode quota there, so it is `unsupported`
 * unless `inodesUnlimited` says that the edge knows.
 */
const Upper = message('upper', {
  driver: choice(1, ['tmpfs', 'image', 'btrfs']),
  sizeBytes: u64(2, { minimum: 64 * KIB }),
  inodesMax: u64(3, { minimum: 16 }),
  /** `inodesMax` may go unenforced where the driver cannot. */
  inodesUnlimited: optional(bool(4)),
});

const Root = message('root', {
  /** Mounted before with `layer-mount`; topmost first. */
  layers: listOf(1, message('root-layer', { layerId: layerId(1) }), {
    itemsMin: 1,
    itemsMax: LAYERS_MAX,
    bytesMax: 8 * KIB,
  }),
  upper: struct(2, Upper),
  nosuid: bool(3),
});

const MOUNT_KINDS = [
  'proc',
  'tmpfs',
  'devpts',
  'mqueue',
  /** The node's one read-only sysfs, shared by all sandboxes. */
  'sysfs',
  /** The node's one minimal /dev. */
  'dev',
  /** `source`, a directory or file below the state root. */
  'bind',
  /** `source`, a mounted layer by its id, such as the platform's tools at `/.dsec`. */
  'layer',
  /** Hides the target behind an empty directory or the null inode. */
  'mask',
  /** Makes what is there read-only. */
  'readonly',
] as const;

/**
 * In order. A target that cannot be reached without symlinks, or a step that fails, fails the spawn.
 *
 * Files over procfs are binds: after `proc` and what masks it, so that they come out on top. A sandbox that
 * shall see its own limits has one over `/proc/meminfo`, `cpuinfo`, `stat`, `uptime` and `loadavg`, and one
 * with a number of its own over `/proc/sys/kernel/random/boot_id` (behind the `readonly` of `/proc/sys`,
 * which would hide it). The files lie below the state root, are read-only inside, and must be readable by
 * others.
 */
export const Mount = message('mount', {
  kind: choice(1, MOUNT_KINDS),
  /** Inside the new root; made as a directory where missing. */
  target: path(2, { bytesMin: 1, bytesMax: PATH_BYTES_MAX }),
  source: optional(statePath(3)),
  flags: u32(4, { maximum: 31 }),
  sizeBytes: optional(u64(5)),
  inodesMax: optional(u64(6)),
  mode: optional(u16(7, { maximum: 0o7777 })),
  /** Options of the file system, such as `subset=pid`, each `key` or `key=value`. */
  options: optional(pathList(8, { itemsMax: 8, itemBytesMax: 64, bytesMax: KIB })),
});

const Rlimit = message('rlimit', {
  /** Linux RLIMIT number. */
  resource: u8(1, { maximum: 15 }),
  /** Absent: unlimited. */
  soft: optional(u64(2)),
  hard: optional(u64(3)),
});

const Descriptor = message('descriptor', {
  number: u32(1, { maximum: 15 }),
  /** `listener`: a new listening stream socket bound at `name`. `log`: the file `name`, opened to append. */
  kind: choice(2, ['null', 'listener', 'log']),
  name: optional(statePath(3)),
});

/**
 * A pair of devices between the sandbox (`eth0`) and the router (`v` and the address in hex). IPv4, as a
 * number: the first part of the dotted form is the highest byte. No two objects have the same address; it
 * is free again when the object is released.
 */
const Link = message('link', { address: u32(1), gateway: u32(2) });

export const Spawn = message('spawn', {
  ...objectKey,
  kind: choice(3, ['sandbox', 'service']),
  namespaces: u32(4, { maximum: 127 }),
  /**
   * Of the namespace of PID 1. Its root is PID 1 itself, as the kernel gives the files of an undumpable
   * process to the root of its namespace: `0 → base + 65535 (1)` and `1 → base (65535)`.
   */
  idMaps: listOf(5, IdMap, { itemsMax: 4, bytesMax: KIB }),
  /**
   * Of the namespace that sessions live in, which PID 1 has as descriptor 4: `0 → 1 (65535)`. Must not hold
   * id 0 of the namespace of PID 1 (THREATS B4). Files are seen through it: layers are shifted by it, so that
   * id n on disk is id n of sessions, `base + n` for the host. aether is told the same map by its arguments:
   * `--session-ids INSIDE:OUTSIDE:COUNT`, here `0:1:65535`.
   */
  sessionIdMaps: listOf(6, IdMap, { itemsMax: 4, bytesMax: KIB }),
  hostname: optional(shortText(7, 63)),
  /** Absent for a service: it sees an empty root and its mounts. */
  root: optional(struct(8, Root)),
  mounts: listOf(9, Mount, { itemsMax: 128, bytesMax: 64 * KIB }),
  sysctls: assignments(11),
  cgroups: listOf(12, Cgroup, { itemsMin: 1, itemsMax: 8, bytesMax: 32 * KIB }),
  rlimits: listOf(13, Rlimit, { itemsMax: 16, bytesMax: KIB }),
  /**
   * Of PID 1. Bit n is capability n: bounding, permitted, effective, inheritable and ambient alike; never
   * more than the fixed set. aether needs CHOWN (bit 0), to give pipes and terminals to the user of a
   * command, who could not open /dev/stdout else. Sessions have capabilities of their own namespace.
   */
  capabilities: u64(14),
  noNewPrivileges: bool(15),
  /** A classic BPF program, 8 bytes an instruction. */
  seccomp: optional(bytes(16, { bytesMin: 8, bytesMax: 32 * KIB })),
  /** Of PID 1 in its namespace: 0 for a sandbox. */
  uid: u32(17),
  gid: u32(18),
  /** Below the state root. Absent: aether, from its sealed copy. */
  program: optional(statePath(19)),
  argv: pathList(20, { itemsMin: 1, itemsMax: 256, itemBytesMax: 4 * KIB, bytesMax: 32 * KIB }),
  env: pathList(21, { itemsMax: 64, itemBytesMax: 4 * KIB, bytesMax: 16 * KIB }),
  /** All that PID 1 has, but for the session namespace. */
  descriptors: listOf(22, Descriptor, { itemsMin: 1, itemsMax: 16, bytesMax: 10 * KIB }),
  oomScoreAdj: i32(23, { minimum: -1000, maximum: 1000 }),
  /**
   * Processors that PID 1 may run on, and so its sessions: bit n of byte m is processor 8m + n. It makes
   * `nproc` follow the limit and is no limit itself: a program may widen its affinity again, as far as its
   * cpuset goes. What holds is the quota (`cpu.max`, `cpu.cfs_quota_us`) and, where there is a cpuset
   * controller, `cpuset.cpus` in `cgroups`. Absent: as the launcher; none that is there: the spawn fails.
   */
  cpus: optional(bytes(24, { bytesMin: 1, bytesMax: 1024 })),
  /** Absent: the new network namespace has loopback only. */
  link: optional(struct(25, Link)),
});

/** What a spawn holds lists of, for those who keep encodings of their items. */
export const SPAWN_ITEMS = {
  mount: Mount,
  setting: Assignment,
  rlimit: Rlimit,
  descriptor: Descriptor,
};

export type SpawnFields = MessageValue<typeof Spawn>;
export type MountFields = MessageValue<typeof Mount>;
