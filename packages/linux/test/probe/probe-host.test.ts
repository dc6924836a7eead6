import { describe, expect, it } from 'vitest';
import { fails, type HostFacts } from '../../src/probe/facts.ts';
import { reportOf } from '../../src/probe/probe-host.ts';
import { CHECK_GROUPS, type CheckStatus, type HostCheck } from '../../src/probe/report.ts';
import {
  debian13,
  debian13Stock,
  HOSTS,
  hybrid,
  legacyCgroups,
  oldKernel,
  ordinaryUser,
  ubuntu2404,
} from './hosts.ts';

function find(facts: HostFacts, id: string): HostCheck {
  const found = reportOf(facts).checks.find((check) => check.id === id);
  if (found === undefined) throw new Error(`no check ${id}`);
  return found;
}

const statuses = (facts: HostFacts) =>
  Object.fromEntries(reportOf(facts).checks.map((check) => [check.id, check.status]));

const verdicts = (facts: HostFacts) =>
  Object.fromEntries(
    Object.entries(reportOf(facts).verdicts).map(([name, verdict]) => [name, verdict.status]),
  );

describe.each(Object.entries(HOSTS))('%s', (_name, facts) => {
  const { checks } = reportOf(facts);

  it('has every check once, in a known group, with something found', () => {
    expect(new Set(checks.map((check) => check.id)).size).toBe(checks.length);
    expect(checks.map((check) => check.id).sort()).toEqual(Object.keys(statuses(debian13)).sort());
    for (const check of checks) {
      expect(CHECK_GROUPS).toContain(check.group);
      expect(check.found, check.id).not.toBe('');
      expect(check.neededFor, check.id).not.toBe('');
    }
  });

  it('tells what to do exactly where something is not ok', () => {
    for (const check of checks) expect(check.remedy === '', check.id).toBe(check.status === 'ok');
  });

  it('survives the way through JSON', () => {
    const report = reportOf(facts);
    expect(JSON.parse(JSON.stringify(report))).toEqual(report);
  });
});

it('finds nothing to do on a good host', () => {
  expect(reportOf(debian13).checks.filter((check) => check.status !== 'ok')).toEqual([]);
  expect(verdicts(debian13)).toEqual({
    layers: 'possible',
    container: 'possible',
    microvm: 'possible',
    fullvm: 'possible',
  });
  expect(reportOf(debian13).host).toEqual({
    os: 'Debian GNU/Linux 13 (trixie)',
    kernel: '6.16.3+deb13-amd64',
    architecture: 'x86_64',
    cpus: 64,
    memoryBytes: 512 * 2 ** 30,
    uid: 0,
  });
});

const EXPECTED: [string, HostFacts, Record<string, CheckStatus>, Record<string, string>][] = [
  [
    'Debian 13 as delivered',
    debian13Stock,
    { 'kernel.version': 'degraded', 'fs.overlay-descriptor': 'missing', 'fs.overlay-path': 'ok' },
    { layers: 'degraded', container: 'degraded', microvm: 'degraded', fullvm: 'degraded' },
  ],
  [
    'a hybrid guest',
    hybrid,
    {
      'cgroup.tree': 'degraded',
      'cgroup.kill': 'ok',
      'cgroup.cpu': 'degraded',
      'cgroup.memory': 'degraded',
      'cgroup.io': 'degraded',
      'privilege.root': 'ok',
      'privilege.resource': 'degraded',
      'security.apparmor': 'missing',
      'bpf.cgroup-skb': 'ok',
      'bpf.lsm': 'missing',
      'vm.kvm': 'missing',
      'vm.qemu': 'ok',
      'memory.swap': 'degraded',
      'limit.kernel.pid_max': 'degraded',
      'limit.nofile': 'degraded',
      'machine.core-scheduling': 'ok',
    },
    { layers: 'possible', container: 'degraded', microvm: 'degraded', fullvm: 'degraded' },
  ],
  [
    'cgroup v1 alone',
    legacyCgroups,
    {
      'cgroup.tree': 'missing',
      'cgroup.create': 'missing',
      'cgroup.kill': 'missing',
      'cgroup.memory': 'degraded',
    },
    { layers: 'possible', container: 'impossible', microvm: 'impossible', fullvm: 'impossible' },
  ],
  [
    'Ubuntu 24.04',
    ubuntu2404,
    {
      'kernel.version': 'ok',
      'fs.erofs': 'ok',
      'security.apparmor': 'ok',
      'bpf.lsm': 'missing',
      'memory.compressed-swap': 'degraded',
    },
    { layers: 'possible', container: 'degraded', microvm: 'degraded', fullvm: 'degraded' },
  ],
  [
    'an old kernel',
    oldKernel,
    {
      'kernel.version': 'missing',
      'namespace.time': 'missing',
      'cgroup.kill': 'missing',
      'cgroup.freeze': 'ok',
      'fs.erofs-file': 'missing',
      'security.landlock': 'missing',
      'vm.qemu': 'degraded',
      'limit.fs.mount-max': 'unknown',
    },
    { layers: 'impossible', container: 'impossible', microvm: 'impossible', fullvm: 'impossible' },
  ],
  [
    'an ordinary user',
    ordinaryUser,
    {
      'privilege.root': 'unknown',
      'fs.erofs-file': 'unknown',
      'bpf.lsm': 'unknown',
      'vm.kvm': 'unknown',
      'kernel.version': 'ok',
      'cgroup.memory': 'ok',
    },
    { layers: 'unknown', container: 'unknown', microvm: 'unknown', fullvm: 'unknown' },
  ],
];

describe.each(EXPECTED)('%s', (_name, facts, checks, backends) => {
  it('is judged check by check', () => {
    expect(statuses(facts)).toMatchObject(checks);
  });

  it('gets its verdicts', () => {
    expect(verdicts(facts)).toEqual(backends);
  });
});

describe('remedies', () => {
  it.each([
    ['kernel.version', oldKernel, 'linux-generic-hwe-24.04'],
    ['kernel.version', debian13Stock, 'trixie-backports'],
    ['cgroup.tree', legacyCgroups, 'mount -t cgroup2'],
    ['cgroup.memory', hybrid, 'cgroup_no_v1=memory'],
    ['limit.kernel.pid_max', hybrid, 'sysctl -w kernel.pid_max=1048576'],
    ['memory.swap', hybrid, 'swapon'],
    ['security.apparmor', hybrid, 'CONFIG_SECURITY_APPARMOR'],
    ['vm.kvm', hybrid, 'modprobe kvm_amd'],
    ['vm.qemu', oldKernel, 'apt-get install qemu-system-x86'],
    ['fs.erofs-file', oldKernel, 'CONFIG_EROFS_FS_BACKED_BY_FILE'],
    ['vm.kvm', ordinaryUser, 'sudo dsec doctor'],
  ] as const)('of %s', (id, facts, part) => {
    expect(find(facts, id).remedy).toContain(part);
  });
});

describe('single facts', () => {
  const files = (more: Record<string, string>) => ({ files: { ...debian13.files, ...more } });
  it.each([
    ['kernel.version', { kernelRelease: '6.12.0' }, 'degraded', '6.12.0'],
    ['kernel.version', { kernelRelease: '6.14.0-27-generic' }, 'degraded', 'by path'],
    ['kernel.version', { kernelRelease: '6.11.9' }, 'missing', 'older than 6.12'],
    ['kernel.version', { kernelRelease: 'weird' }, 'unknown', 'weird'],
    ['kernel.architecture', { arch: 'riscv64' }, 'missing', 'riscv64'],
    ['privilege.root', files({ '/proc/self/status': 'CapEff:\t0\n' }), 'missing', 'SYS_ADMIN'],
    ['privilege.root', files({ '/proc/self/status': '' }), 'unknown', 'no capabilities'],
    ['namespace.user', { namespaceFiles: ['mnt'] }, 'missing', '/proc/self/ns/user'],
    ['cgroup.kill', { cgroupFiles: undefined }, 'unknown', 'could be seen'],
    ['fs.erofs', files({ '/proc/filesystems': '' }), 'ok', 'a module'],
    [
      'fs.erofs',
      {
        ...files({ '/proc/filesystems': '' }),
        modules: { ...debian13.modules, erofs: 'absent' as const },
      },
      'missing',
      'not in this kernel',
    ],
    [
      'security.landlock',
      { landlock: { state: 'works' as const, detail: '', abi: 2 } },
      'degraded',
      'version 2',
    ],
    ['security.apparmor', { tools: {} }, 'degraded', 'no apparmor_parser'],
    [
      'security.apparmor',
      files({ '/sys/module/apparmor/parameters/enabled': 'N\n' }),
      'missing',
      'switched off',
    ],
    [
      'security.seccomp',
      files({ '/proc/sys/kernel/seccomp/actions_avail': 'kill_thread errno allow' }),
      'missing',
      'kill_process',
    ],
    ['vm.qemu', { qemu: undefined }, 'missing', 'not found'],
    ['vm.qemu', { qemu: { path: '/q', versionLine: 'broken' } }, 'unknown', 'broken'],
    [
      'limit.user.max_user_namespaces',
      files({ '/proc/sys/user/max_user_namespaces': '0\n' }),
      'missing',
      '0, less than',
    ],
    ['machine.cpus', { cpus: 1 }, 'degraded', '1'],
    ['machine.memory', files({ '/proc/meminfo': '' }), 'unknown', 'meminfo'],
    [
      'machine.disk',
      { disk: { ...(debian13.disk as NonNullable<HostFacts['disk']>), fileSystem: 'overlay' } },
      'degraded',
      'no place',
    ],
    ['machine.disk', { disk: undefined }, 'unknown', 'not readable'],
  ] as [string, Partial<HostFacts>, CheckStatus, string][])(
    '%s of %o is %s',
    (id, more, status, part) => {
      const check = find({ ...debian13, ...more }, id);
      expect(check.status).toBe(status);
      expect(check.found).toContain(part);
    },
  );

  it('knows a controller that was switched off at boot, and one that is in no tree', () => {
    const cgroups = (row: string) => ({
      ...debian13,
      cgroupControllers: ['cpu'],
      ...files({ '/proc/cgroups': row }),
    });
    expect(find(cgroups('memory\t0\t1\t0\n'), 'cgroup.memory')).toMatchObject({
      status: 'missing',
      remedy: 'boot with cgroup_enable=memory',
    });
    expect(find(cgroups('memory\t0\t1\t1\n'), 'cgroup.memory').found).toContain('no mounted tree');
    expect(find(cgroups(''), 'cgroup.pids').remedy).toContain('CONFIG_CGROUP_PIDS');
  });
});

it.each(['tmpfs', 'overlay'])(
  'says when the state directory lies on %s, which holds no layers',
  (fileSystem) => {
    const disk = { path: '/state', fileSystem, freeBytes: 1e12, totalBytes: 1e12, freeInodes: 1e6 };
    const mounts = { ...debian13.mounts, erofsFile: fails('fsconfig create: ENOTBLK') };
    const check = find({ ...debian13, disk, mounts }, 'fs.erofs-file');
    expect(check).toMatchObject({ status: 'missing', remedy: expect.stringMatching(/--state/) });
    expect(check.found).toMatch(new RegExp(`/state lies on ${fileSystem}.*ENOTBLK`));
  },
);
