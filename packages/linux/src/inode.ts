import { open } from 'node:fs/promises';
import { AT_FDCWD, type BytePath, cString, type FileTarget, shownPath } from './byte-path.ts';
import { syscall } from './syscall.ts';

/**
 * Making, owning, dating and renaming of files where Node's fs is too coarse. All but `syncDirectory`
 * block.
 */

const AT_SYMLINK_NOFOLLOW = 0x100;
const AT_EMPTY_PATH = 0x1000;
const UTIME_NOW = 0x3fff_ffffn;
const UTIME_OMIT = 0x3fff_fffen;
const NANOSECONDS = 1_000_000_000n;

/** Where a relative path starts; default the current directory. */
export interface AtDirectory {
  readonly dirFd?: number;
}

/** A device number as the kernel's calls take it: 12 bits of major, 20 of minor. */
export function deviceNumber(major: number, minor: number): number {
  return ((minor & 0xff) | ((major & 0xfff) << 8) | ((minor & 0xfff00) << 12)) >>> 0;
}

/**
 * Makes a device, FIFO or socket inode. `mode` holds type and permission bits, which the umask still cuts.
 */
export function makeNode(
  path: BytePath,
  node: { readonly mode: number; readonly major?: number; readonly minor?: number },
  at: AtDirectory = {},
): void {
  const device = deviceNumber(node.major ?? 0, node.minor ?? 0);
  syscall('mknodat', [at.dirFd ?? AT_FDCWD, cString(path), node.mode, device], shownPath(path));
}

/** Changes owner and group; a link itself, not its target. Ids are 32 bits wide; -1 keeps one. */
export function changeOwner(
  target: FileTarget,
  uid: number,
  gid: number,
  at: AtDirectory = {},
): void {
  const { dirFd, path, flags, shown } = addressOf(target, at);
  syscall('fchownat', [dirFd, path, uid, gid, flags], shown);
}

/** A time in nanoseconds since the epoch (may be negative), the present, or unchanged. */
export type FileTime = bigint | 'now' | 'omit';

/** Sets access and modification time to the nanosecond; of a link itself, not its target. */
export function setFileTimes(
  target: FileTarget,
  times: { readonly access: FileTime; readonly modification: FileTime },
  at: AtDirectory = {},
): void {
  const { dirFd, path, flags, shown } = addressOf(target, at);
  const pair = Buffer.alloc(32);
  writeTime(pair, 0, times.access);
  writeTime(pair, 16, times.modification);
  syscall('utimensat', [dirFd, path, pair, flags], shown);
}

function writeTime(pair: Buffer, offset: number, time: FileTime): void {
  if (typeof time === 'string') {
    pair.writeBigInt64LE(time === 'now' ? UTIME_NOW : UTIME_OMIT, offset + 8);
    return;
  }
  const nanoseconds = ((time % NANOSECONDS) + NANOSECONDS) % NANOSECONDS;
  pair.writeBigInt64LE((time - nanoseconds) / NANOSECONDS, offset);
  pair.writeBigInt64LE(nanoseconds, offset + 8);
}

const RENAME_FLAGS = { replace: 0, 'no-replace': 1, exchange: 2 } as const;

/**
 * renameat2(2). `no-replace` fails with `already-exists` instead of replacing; `exchange` swaps two names
 * in one step. Some network file systems know neither: `invalid-argument` (EINVAL).
 */
export function renameFile(
  from: BytePath,
  to: BytePath,
  mode: keyof typeof RENAME_FLAGS,
  at: { readonly fromDirFd?: number; readonly toDirFd?: number } = {},
): void {
  const { fromDirFd = AT_FDCWD, toDirFd = AT_FDCWD } = at;
  const args = [fromDirFd, cString(from), toDirFd, cString(to), RENAME_FLAGS[mode]];
  syscall('renameat2', args, `${shownPath(from)} to ${shownPath(to)}`);
}

/**
 * Makes the names in a directory durable: a rename or create counts after a crash only when this has
 * resolved.
 */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes out everything of the file system that a descriptor lies on. Blocks for as long as that takes. */
export function syncFileSystem(fd: number): void {
  syscall('syncfs', [fd]);
}

function addressOf(target: FileTarget, at: AtDirectory) {
  if (typeof target === 'number') {
    return {
      dirFd: target,
      path: cString(''),
      flags: AT_EMPTY_PATH,
      shown: `<descriptor ${target}>`,
    };
  }
  const dirFd = at.dirFd ?? AT_FDCWD;
  return { dirFd, path: cString(target), flags: AT_SYMLINK_NOFOLLOW, shown: shownPath(target) };
}
