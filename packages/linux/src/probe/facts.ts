/**
 * Everything the probe learns about a host before it judges: raw texts and outcomes, no conclusions.
 * Gathering is the only part with effects; the checks are pure functions of this record, and tests hand
 * them recorded hosts.
 */

/** The outcome of trying something for real. */
export type Outcome =
  | { readonly state: 'works'; readonly detail: string }
  | { readonly state: 'fails'; readonly why: string }
  /** Could not be tried: no right to, nothing to try it with, or no answer in time. */
  | { readonly state: 'untried'; readonly why: string };

export const works = (detail = ''): Outcome => ({ state: 'works', detail });
export const fails = (why: string): Outcome => ({ state: 'fails', why });
export const untried = (why: string): Outcome => ({ state: 'untried', why });

export const NAMESPACE_KINDS = [
  'user',
  'mount',
  'pid',
  'net',
  'ipc',
  'uts',
  'cgroup',
  'time',
] as const;

export type NamespaceKind = (typeof NAMESPACE_KINDS)[number];

/** Program types that the policies need, by the name that the kernel's documentation uses. */
export const BPF_KINDS = [
  'cgroup_skb',
  'cgroup_sock_addr',
  'sched_cls',
  'cgroup_device',
  'lsm',
] as const;

export type BpfKind = (typeof BPF_KINDS)[number];

/** What the child in a private mount namespace tried. */
export interface MountOutcomes {
  /** An EROFS image mounted from a file, without a loop device. */
  readonly erofsFile: Outcome;
  /** The same, past the page cache of the file. */
  readonly erofsDirectIo: Outcome;
  /** An overlay of detached mounts given by descriptor. */
  readonly overlayDescriptor: Outcome;
  /** An overlay of attached layers given by path. */
  readonly overlayPath: Outcome;
  /** A layer whose ids are shifted through a user namespace. */
  readonly idmap: Outcome;
}

/** Where a kernel feature comes from when it is not running yet. */
export type ModuleState = 'builtin' | 'module' | 'absent' | 'unknown';

export const PROBED_MODULES = ['erofs', 'overlay', 'fuse', 'kvm', 'zram'] as const;

export type ProbedModule = (typeof PROBED_MODULES)[number];

export interface DiskFacts {
  /** The nearest existing directory at or above the state directory. */
  readonly path: string;
  readonly fileSystem: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly freeInodes: number;
}

export interface HostFacts {
  readonly takenAt: string;
  /** As Node names it: `x64`, `arm64`, … */
  readonly arch: string;
  readonly kernelRelease: string;
  readonly uid: number;
  readonly cpus: number;
  /** Soft and hard limit of open files of this process. */
  readonly openFiles: { readonly soft: number; readonly hard: number } | undefined;
  /** Texts of the files in `FACT_FILES`; those that could not be read are absent. */
  readonly files: Readonly<Record<string, string>>;
  readonly modules: Readonly<Record<ProbedModule, ModuleState>>;
  /** Names in /proc/self/ns. */
  readonly namespaceFiles: readonly string[];
  readonly namespaces: Readonly<Record<NamespaceKind, Outcome>>;
  /** Controllers that the root of the cgroup v2 tree offers; `undefined` without such a tree. */
  readonly cgroupControllers: readonly string[] | undefined;
  /** Making a cgroup v2 directory. */
  readonly cgroupCreate: Outcome;
  /** Names of files in a cgroup v2 directory below the root; `undefined` when none could be seen. */
  readonly cgroupFiles: readonly string[] | undefined;
  readonly mounts: MountOutcomes;
  readonly fuse: Outcome;
  /** Version of Landlock's interface, or why there is none. */
  readonly landlock: Outcome & { readonly abi?: number };
  /** Names of active security modules; `undefined` when the kernel does not tell. */
  readonly securityModules: readonly string[] | undefined;
  readonly bpf: Readonly<Record<BpfKind, Outcome>>;
  readonly coreScheduling: Outcome;
  readonly kvm: Outcome;
  /** Absolute path and the first line that `--version` printed. */
  readonly qemu: { readonly path: string; readonly versionLine: string } | undefined;
  /** Absolute paths of the tools in `FACT_TOOLS` that were found. */
  readonly tools: Readonly<Record<string, string>>;
  readonly disk: DiskFacts | undefined;
}

/** Files that are read as they are. */
export const FACT_FILES = [
  '/etc/os-release',
  '/proc/cgroups',
  '/proc/filesystems',
  '/proc/meminfo',
  '/proc/self/cgroup',
  '/proc/self/mountinfo',
  '/proc/self/status',
  '/proc/swaps',
  '/proc/pressure/memory',
  '/proc/sys/kernel/seccomp/actions_avail',
  '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
  '/sys/block/zram0/disksize',
  '/sys/devices/system/cpu/smt/active',
  '/sys/module/apparmor/parameters/enabled',
  '/sys/module/zswap/parameters/enabled',
] as const;

/** Programs that DSec or its remedies call. */
export const FACT_TOOLS = ['unshare', 'apparmor_parser', 'modprobe'] as const;
