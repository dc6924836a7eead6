import {
  BPF_KINDS,
  fails,
  type HostFacts,
  NAMESPACE_KINDS,
  untried,
  works,
} from '../../src/probe/facts.ts';
import { LIMITS, sysctlPath } from '../../src/probe/limits.ts';

/**
 * Hosts to judge without being on them. `debian13` is a bare host on which all is well; the others are what
 * differs from it, in the words that such a host's kernel and tools use.
 */

const each = <K extends string, V>(keys: readonly K[], value: V) =>
  Object.fromEntries(keys.map((key) => [key, value])) as Record<K, V>;

const UNIFIED_MOUNTS = `22 26 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
26 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro
29 22 0:25 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate
`;

const V2_CGROUPS = `#subsys_name	hierarchy	num_cgroups	enabled
cpuset	0	91	1
cpu	0	91	1
cpuacct	0	91	1
blkio	0	91	1
memory	0	91	1
devices	0	91	1
freezer	0	91	1
pids	0	91	1
`;

const CGROUP_FILES = [
  'cgroup.controllers',
  'cgroup.events',
  'cgroup.freeze',
  'cgroup.kill',
  'cgroup.procs',
  'cpu.pressure',
  'cpu.stat',
  'io.pressure',
  'memory.pressure',
];

const GIB_KIB = 1024 * 1024;

export const debian13: HostFacts = {
  takenAt: '2030-01-02T03:04:05.000Z',
  arch: 'x64',
  kernelRelease: '6.16.3+deb13-amd64',
  uid: 0,
  cpus: 64,
  openFiles: { soft: 1024, hard: 1_048_576 },
  files: {
    '/etc/os-release':
      'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nNAME="Debian GNU/Linux"\nVERSION_ID="13"\nID=debian\n',
    '/proc/cgroups': V2_CGROUPS,
    '/proc/filesystems': 'nodev\tsysfs\nnodev\ttmpfs\n\text4\nnodev\toverlay\n\terofs\n',
    '/proc/meminfo': `MemTotal: ${512 * GIB_KIB} kB\nMemAvailable: ${500 * GIB_KIB} kB\n`,
    '/proc/self/cgroup': '0::/user.slice/user-0.slice/session-1.scope\n',
    '/proc/self/mountinfo': UNIFIED_MOUNTS,
    '/proc/self/status': 'Name:\tnode\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n',
    '/proc/swaps':
      'Filename\tType\tSize\tUsed\tPriority\n/dev/zram0          partition\t67108860\t0\t100\n',
    '/proc/pressure/memory': 'some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n',
    '/proc/sys/kernel/seccomp/actions_avail':
      'kill_process kill_thread trap errno user_notif trace log allow\n',
    '/sys/devices/system/cpu/smt/active': '1\n',
    '/sys/module/apparmor/parameters/enabled': 'Y\n',
    '/sys/module/zswap/parameters/enabled': 'N\n',
    ...Object.fromEntries(LIMITS.map((row) => [sysctlPath(row.sysctl), `${row.wanted}\n`])),
  },
  modules: { erofs: 'module', overlay: 'module', fuse: 'module', kvm: 'module', zram: 'module' },
  namespaceFiles: ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'time', 'user', 'uts'],
  namespaces: each(NAMESPACE_KINDS, works('one was made')),
  cgroupControllers: ['cpuset', 'cpu', 'io', 'memory', 'hugetlb', 'pids', 'rdma', 'misc'],
  cgroupCreate: works('one was made'),
  cgroupFiles: CGROUP_FILES,
  mounts: {
    erofsFile: works('mounted from a file'),
    erofsDirectIo: works('mounted from a file'),
    overlayDescriptor: works('written through'),
    overlayPath: works('written through'),
    idmap: works('ids of an EROFS layer shifted'),
  },
  fuse: works('/dev/fuse opens'),
  landlock: { ...works('interface version 7'), abi: 7 },
  securityModules: ['lockdown', 'capability', 'landlock', 'yama', 'apparmor', 'bpf'],
  bpf: each(BPF_KINDS, works('a program loads')),
  coreScheduling: works('cookies can be set'),
  kvm: works('a guest in long mode computed and halted'),
  qemu: {
    path: '/usr/bin/qemu-system-x86_64',
    versionLine: 'QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1)',
  },
  tools: { unshare: '/usr/bin/unshare', apparmor_parser: '/usr/sbin/apparmor_parser' },
  disk: {
    path: '/var/lib',
    fileSystem: 'ext4',
    freeBytes: 2 ** 41,
    totalBytes: 2 ** 42,
    freeInodes: 10_000_000,
  },
};

const withFiles = (base: HostFacts, files: Record<string, string | undefined>) => {
  const merged = { ...base.files, ...files };
  const there = Object.entries(merged).filter((pair) => pair[1] !== undefined);
  return Object.fromEntries(there) as HostFacts['files'];
};

/** Debian 13 with its own kernel: layers by path. */
export const debian13Stock: HostFacts = {
  ...debian13,
  kernelRelease: '6.12.43+deb13-amd64',
  mounts: { ...debian13.mounts, overlayDescriptor: fails('fsconfig lowerdir+=<fd>: EINVAL') },
};

const HYBRID_MOUNTS = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices
37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`;

const HYBRID_CGROUPS = `#subsys_name	hierarchy	num_cgroups	enabled
cpuset	3	1	1
cpu	1	1	1
cpuacct	2	1	1
blkio	7	1	1
memory	4	23	1
devices	5	1	1
freezer	6	1	1
net_cls	0	1	1
hugetlb	0	1	1
pids	8	1	1
`;

/**
 * A small guest with both cgroup versions, no modules, a KVM that only interprets and a kernel that refuses
 * BPF LSM.
 */
export const hybrid: HostFacts = {
  ...debian13,
  kernelRelease: '6.18.44',
  cpus: 2,
  openFiles: { soft: 20_000, hard: 20_000 },
  files: withFiles(debian13, {
    '/etc/os-release': 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n',
    '/proc/cgroups': HYBRID_CGROUPS,
    '/proc/meminfo': 'MemTotal:       24684084 kB\nMemAvailable:   24404084 kB\n',
    '/proc/self/cgroup': '8:pids:/\n4:memory:/\n1:cpu:/\n0::/\n',
    '/proc/self/mountinfo': HYBRID_MOUNTS,
    '/proc/self/status': 'CapEff:\t000001fffeffffff\n',
    '/proc/swaps': 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n',
    '/sys/devices/system/cpu/smt/active': '0\n',
    '/sys/module/apparmor/parameters/enabled': undefined,
    '/proc/sys/kernel/pid_max': '32768\n',
    '/proc/sys/fs/inotify/max_user_instances': '128\n',
    '/proc/sys/kernel/pty/max': '4096\n',
  }),
  modules: each(['erofs', 'overlay', 'fuse', 'kvm', 'zram'] as const, 'unknown'),
  cgroupControllers: ['hugetlb'],
  cgroupFiles: CGROUP_FILES,
  securityModules: ['lockdown', 'capability', 'landlock', 'bpf'],
  bpf: { ...debian13.bpf, lsm: fails('bpf program load: EPERM') },
  coreScheduling: fails('prctl 62: EINVAL'),
  kvm: fails('it interprets firmware, but cannot run a kernel'),
  tools: { unshare: '/usr/bin/unshare' },
};

/** Booted with systemd.unified_cgroup_hierarchy=0 and no unified tree. */
export const legacyCgroups: HostFacts = {
  ...debian13,
  files: withFiles(debian13, {
    '/proc/cgroups': HYBRID_CGROUPS,
    '/proc/self/mountinfo': HYBRID_MOUNTS.replace(/^41 .*\n/m, ''),
    '/proc/self/cgroup': '8:pids:/\n4:memory:/\n1:cpu:/\n',
  }),
  cgroupControllers: undefined,
  cgroupCreate: untried('no cgroup v2 tree'),
  cgroupFiles: undefined,
};

/** Ubuntu 24.04 with its hardware-enablement kernel. */
export const ubuntu2404: HostFacts = {
  ...debian13,
  kernelRelease: '6.17.0-14-generic',
  files: withFiles(debian13, {
    '/etc/os-release':
      'PRETTY_NAME="Ubuntu 24.04.3 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n',
    '/proc/filesystems': 'nodev\tsysfs\n\text4\n',
    '/proc/sys/kernel/apparmor_restrict_unprivileged_userns': '1\n',
    '/proc/swaps':
      'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/swap.img file 8388604 0 -2\n',
  }),
  securityModules: ['lockdown', 'capability', 'landlock', 'yama', 'apparmor', 'ima', 'evm'],
  bpf: { ...debian13.bpf, lsm: fails('bpf program load: EINVAL') },
  qemu: {
    path: '/usr/bin/qemu-system-x86_64',
    versionLine: 'QEMU emulator version 8.2.2 (Debian 1:8.2.2+ds-0ubuntu1.8)',
  },
};

/** Ubuntu 20.04: too old in many ways at once. */
export const oldKernel: HostFacts = {
  ...debian13,
  kernelRelease: '5.4.0-216-generic',
  files: withFiles(debian13, {
    '/etc/os-release': "PRETTY_NAME='Ubuntu 20.04.6 LTS'\nVERSION_ID='20.04'\nID=ubuntu\n",
    '/proc/self/mountinfo': HYBRID_MOUNTS,
    '/proc/cgroups': HYBRID_CGROUPS,
    '/proc/pressure/memory': undefined,
    '/proc/sys/fs/mount-max': undefined,
  }),
  namespaceFiles: ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts'],
  namespaces: { ...debian13.namespaces, time: fails('unshare: unrecognized option --time') },
  cgroupControllers: [],
  cgroupFiles: ['cgroup.controllers', 'cgroup.freeze', 'cgroup.procs'],
  mounts: {
    erofsFile: fails('fsconfig create: ENOTBLK'),
    erofsDirectIo: fails('fsconfig directio: EINVAL'),
    overlayDescriptor: fails('fsconfig lowerdir+=<fd>: EINVAL'),
    overlayPath: fails('fsconfig lowerdir+="/tmp/x": EINVAL'),
    idmap: fails('open_tree_attr <fd>: ENOSYS'),
  },
  landlock: fails('landlock_create_ruleset: ENOSYS'),
  securityModules: undefined,
  bpf: { ...debian13.bpf, lsm: fails("no hook bpf_lsm_file_open in the kernel's BTF") },
  qemu: {
    path: '/usr/bin/qemu-system-x86_64',
    versionLine: 'QEMU emulator version 4.2.1 (Debian 1:4.2-3ubuntu6.30)',
  },
};

/** The good host, looked at by somebody who may not try things. */
export const ordinaryUser: HostFacts = {
  ...debian13,
  uid: 1000,
  openFiles: { soft: 1024, hard: 1_048_576 },
  cgroupCreate: untried('needs root'),
  mounts: {
    erofsFile: untried('needs root'),
    erofsDirectIo: untried('needs root'),
    overlayDescriptor: untried('needs root'),
    overlayPath: untried('needs root'),
    idmap: untried('needs root'),
  },
  fuse: untried('needs root'),
  bpf: each(BPF_KINDS, untried('needs root')),
  kvm: untried('needs root'),
};

export const HOSTS: Readonly<Record<string, HostFacts>> = {
  debian13,
  debian13Stock,
  hybrid,
  legacyCgroups,
  ubuntu2404,
  oldKernel,
  ordinaryUser,
};
