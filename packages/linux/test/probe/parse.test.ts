import { describe, expect, it } from 'vitest';
import {
  parseCapabilities,
  parseFilesystems,
  parseMeminfo,
  parseModuleState,
  parseMountinfo,
  parseOsRelease,
  parseProcCgroups,
  parseQemuVersion,
  parseSwaps,
  parseUnifiedCgroup,
  parseWords,
} from '../../src/probe/parse.ts';
import { hybrid } from './hosts.ts';

it.each([
  ['QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)', 10, 0, 2],
  ['QEMU emulator version 7.2.17 (Debian 1:7.2+dfsg-7+deb12u13)', 7, 2, 17],
  ['QEMU emulator version 9.1', 9, 1, 0],
])('reads %s', (line, major, minor, patch) => {
  expect(parseQemuVersion(line)).toEqual({ major, minor, patch });
});

it('does not invent a version', () => {
  expect(parseQemuVersion('qemu: command line error')).toBeUndefined();
});

describe('mountinfo', () => {
  it('reads rows with and without optional fields, and undoes escapes', () => {
    const text =
      '36 35 98:0 /mnt1 /mnt\\040two rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw,sync\n' +
      '61 43 0:39 / /m ro - erofs /x\\134y ro,directio\n' +
      'nonsense\n\n' +
      '1 2 0:1 / /cut rw';
    expect(parseMountinfo(text)).toEqual([
      {
        id: 36,
        parent: 35,
        root: '/mnt1',
        target: '/mnt two',
        options: ['rw', 'noatime'],
        type: 'ext3',
        source: '/dev/root',
        superOptions: ['rw', 'sync'],
      },
      {
        id: 61,
        parent: 43,
        root: '/',
        target: '/m',
        options: ['ro'],
        type: 'erofs',
        source: '/x\\y',
        superOptions: ['ro', 'directio'],
      },
    ]);
  });

  it('reads a hybrid host', () => {
    const rows = parseMountinfo(hybrid.files['/proc/self/mountinfo'] ?? '');
    expect(rows).toHaveLength(12);
    expect(rows.filter((row) => row.type === 'cgroup')).toHaveLength(9);
    expect(rows.find((row) => row.type === 'cgroup2')?.target).toBe('/sys/fs/cgroup/unified');
  });
});

describe('cgroups', () => {
  it('reads /proc/cgroups', () => {
    const text =
      '#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t23\t1\nhugetlb\t0\t1\t0\n';
    expect(parseProcCgroups(text)).toEqual([
      { name: 'memory', hierarchy: 4, enabled: true },
      { name: 'hugetlb', hierarchy: 0, enabled: false },
    ]);
    expect(parseProcCgroups('')).toEqual([]);
  });

  it('finds the own place in the v2 tree', () => {
    expect(parseUnifiedCgroup('4:memory:/x\n0::/user.slice/a b\n')).toBe('/user.slice/a b');
    expect(parseUnifiedCgroup('4:memory:/x\n')).toBeUndefined();
  });

  it('reads a list of controllers', () => {
    expect(parseWords('cpuset cpu io\n')).toEqual(['cpuset', 'cpu', 'io']);
    expect(parseWords('\n')).toEqual([]);
  });
});

it('reads os-release in every way of quoting', () => {
  const text = 'ID=debian\nNAME="A \\"B\\" C"\nVERSION_ID=\'12\'\n# comment\nbroken\nEMPTY=\n';
  expect(parseOsRelease(text)).toEqual({
    ID: 'debian',
    NAME: 'A "B" C',
    VERSION_ID: '12',
    EMPTY: '',
  });
});

it('reads /proc/filesystems', () => {
  expect(parseFilesystems('nodev\tproc\n\text4\n\terofs\n')).toEqual(['proc', 'ext4', 'erofs']);
});

it('reads /proc/meminfo', () => {
  const text = 'MemTotal:       24684084 kB\nMemAvailable:      12 kB\nHugePages_Total:       3\n';
  expect(parseMeminfo(text, 'MemTotal')).toBe(24_684_084 * 1024);
  expect(parseMeminfo(text, 'MemAvailable')).toBe(12_288);
  expect(parseMeminfo(text, 'HugePages_Total')).toBeUndefined();
  expect(parseMeminfo(text, 'Mem')).toBeUndefined();
});

it('reads /proc/swaps', () => {
  const header = 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n';
  expect(parseSwaps(header)).toEqual([]);
  const rows = '/dev/zram0              partition\t4096\t0\t100\n/a\\040b file 1 0 -2\n';
  const text = header + rows;
  expect(parseSwaps(text)).toEqual([
    { name: '/dev/zram0', sizeBytes: 4096 * 1024 },
    { name: '/a b', sizeBytes: 1024 },
  ]);
});

it('reads capabilities by name', () => {
  const all = parseCapabilities('CapPrm:\t0\nCapEff:\t000001ffffffffff\n');
  expect(all?.has('SYS_RESOURCE')).toBe(true);
  const fewer = parseCapabilities('CapEff:\t000001fffeffffff\n');
  expect(fewer?.has('SYS_RESOURCE')).toBe(false);
  expect(fewer?.has('BPF')).toBe(true);
  expect(parseCapabilities('CapEff:\t0000000000000000\n')?.size).toBe(0);
  expect(parseCapabilities('Name:\tnode\n')).toBeUndefined();
});

it.each([
  ['erofs', 'module'],
  ['overlay', 'builtin'],
  ['zram', 'module'],
  ['ram', 'absent'],
  ['kvm', 'absent'],
])('finds module %s: %s', (name, state) => {
  const lists = {
    builtin: 'kernel/fs/overlayfs/overlay.ko\n',
    dep:
      'kernel/fs/erofs/erofs.ko.xz: kernel/fs/netfs/netfs.ko.xz\n' +
      'kernel/drivers/block/zram/zram.ko: kernel/arch/x86/kvm/kvm.ko\n',
  };
  expect(parseModuleState(name, lists)).toBe(state);
});
