/** Settings that thousands of sandboxes on one host run into. Host-wide ones are shared by all of them. */
export interface LimitRow {
  readonly sysctl: string;
  /** Below this the check is `degraded`. */
  readonly wanted: number;
  readonly neededFor: string;
}

/** Sized for 8,192 sandboxes (`density.count`); a smaller host can do with less. */
export const LIMITS: readonly LimitRow[] = [
  {
    sysctl: 'kernel.pid_max',
    wanted: 1_048_576,
    neededFor: 'processes of all sandboxes together: they get 80 % of what the host can have',
  },
  { sysctl: 'kernel.threads-max', wanted: 131_072, neededFor: 'threads of all sandboxes together' },
  {
    sysctl: 'user.max_user_namespaces',
    wanted: 16_384,
    neededFor: 'a user namespace, and one for sessions, per sandbox',
  },
  {
    sysctl: 'fs.inotify.max_user_instances',
    wanted: 8_192,
    neededFor: 'file watchers of editors and test runners',
  },
  {
    sysctl: 'fs.inotify.max_user_watches',
    wanted: 524_288,
    neededFor: 'file watchers of editors and test runners',
  },
  {
    sysctl: 'kernel.pty.max',
    wanted: 16_384,
    neededFor: 'terminals; one sandbox can take all of the host',
  },
  {
    sysctl: 'fs.aio-max-nr',
    wanted: 1_048_576,
    neededFor: 'databases inside sandboxes; one sandbox can take all of the host',
  },
  { sysctl: 'fs.file-max', wanted: 1_000_000, neededFor: 'open files of all sandboxes together' },
  { sysctl: 'fs.nr_open', wanted: 1_048_576, neededFor: 'the largest limit a process may get' },
  { sysctl: 'fs.mount-max', wanted: 100_000, neededFor: 'mounts of one namespace' },
  {
    sysctl: 'kernel.keys.root_maxkeys',
    wanted: 100_000,
    neededFor: 'session keyrings that the host makes',
  },
  {
    sysctl: 'net.ipv4.neigh.default.gc_thresh3',
    wanted: 16_384,
    neededFor: 'one neighbour entry for each sandbox with a network',
  },
  {
    sysctl: 'vm.max_map_count',
    wanted: 262_144,
    neededFor: 'search servers and virtual machines with many mappings',
  },
];

/** `kernel.pid_max` → `/proc/sys/kernel/pid_max`. */
export function sysctlPath(name: string): string {
  return `/proc/sys/${name.replaceAll('.', '/')}`;
}
