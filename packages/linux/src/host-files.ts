import { readFileSync, statfsSync } from 'node:fs';
import type { BytePath } from './byte-path.ts';
import { pathBytes } from './byte-path.ts';

/** The kernel's magic numbers of the file systems that DSec treats apart. */
const FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0xef53, 'ext4'],
  [0x5846_5342, 'xfs'],
  [0x9123_683e, 'btrfs'],
  [0x2fc1_2fc1, 'zfs'],
  [0xf2f5_2010, 'f2fs'],
  [0x0102_1994, 'tmpfs'],
  [0x8584_58f6, 'ramfs'],
  [0x794c_7630, 'overlay'],
  [0xe0f5_e1e2, 'erofs'],
  [0x7371_7368, 'squashfs'],
  [0x6573_5546, 'fuse'],
  [0x6969, 'nfs'],
  [0x00c3_6400, 'ceph'],
  [0x0102_1997, '9p'],
  [0xfe53_4d42, 'smb'],
  [0x0bd0_0bd0, 'lustre'],
  [0x6367_7270, 'cgroup2'],
  [0x0027_e0eb, 'cgroup'],
  [0x9fa0, 'proc'],
  [0x6265_6572, 'sysfs'],
]);

/**
 * The type of the file system at a path: a name where known (`ext4` stands for ext2 and ext3 too), else its
 * number.
 */
export function fileSystemType(path: BytePath): string {
  return fileSystemName(statfsSync(pathBytes(path)).type);
}

/** As `fileSystemType`, of the `type` that Node's statfs gives. */
export function fileSystemName(type: number): string {
  const magic = type >>> 0;
  return FILE_SYSTEMS.get(magic) ?? `0x${magic.toString(16)}`;
}

/**
 * A kernel setting by its dotted name (`kernel.pid_max`), trimmed; `undefined` where this kernel has none.
 */
export function readSysctl(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name.replaceAll('.', '/')}`, 'utf8').trim();
  } catch {
    return undefined;
  }
}
