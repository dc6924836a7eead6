import { constants } from 'node:fs';
import { AT_FDCWD, type BytePath, cString, shownPath } from './byte-path.ts';
import { syscallError } from './errno.ts';
import { rawSyscall } from './syscall.ts';

/** Opens a name without the right to read or write it. Node's table of constants lacks this one. */
export const O_PATH = 0o10_000_000;
const O_CLOEXEC = 0o2_000_000;

/** How openat2(2) walks a path. */
export const RESOLVE_FLAGS = {
  /** No mount point is crossed. */
  noCrossMounts: 0x01,
  /** No /proc magic link is followed. */
  noMagicLinks: 0x02,
  /** No symbolic link at all is followed. */
  noSymlinks: 0x04,
  /** Every step stays below the starting directory; a step outside fails with EXDEV. */
  beneath: 0x08,
  /** The starting directory acts as the root, for `..` and absolute links too. */
  inRoot: 0x10,
  /** Fails with EAGAIN instead of waiting for a disk. */
  cached: 0x20,
} as const;

export type ResolveFlag = keyof typeof RESOLVE_FLAGS;

export interface OpenOptions {
  /** Open flags (`fs.constants.O_*`, `O_PATH`); close-on-exec is always added. Default: read only. */
  readonly flags?: number;
  /** Permission bits of a file to be created. */
  readonly mode?: number;
  /** The directory that a relative path starts at. Default: the current directory. */
  readonly dirFd?: number;
  readonly resolve?: readonly ResolveFlag[];
}

/** A rename somewhere on the host can make one scoped walk fail with EAGAIN; the kernel asks to try again. */
const RACED_WALKS_MAX = 32;

/**
 * openat2(2): opens a path with a stated rule for links, `..` and mounts. Returns a descriptor that the
 * caller closes. Blocks. A walk that keeps being raced by renames ends as `unavailable`; a refused link is
 * `invalid-argument`.
 */
export function openAt(path: BytePath, options: OpenOptions = {}): number {
  const { flags = constants.O_RDONLY, mode = 0, dirFd = AT_FDCWD, resolve = [] } = options;
  const bits = resolve.reduce((sum, flag) => sum | RESOLVE_FLAGS[flag], 0);
  const how = Buffer.alloc(24);
  how.writeBigUInt64LE(BigInt(flags | O_CLOEXEC), 0);
  how.writeBigUInt64LE(BigInt(mode), 8);
  how.writeBigUInt64LE(BigInt(bits), 16);
  const name = cString(path);
  const retries = resolve.includes('cached') ? 1 : RACED_WALKS_MAX;
  for (let attempt = 1; ; attempt += 1) {
    const result = rawSyscall('openat2', dirFd, name, how, how.length);
    if (result >= 0) return result;
    const error = syscallError('openat2', -result, shownPath(path));
    if (error.details.errnoName !== 'EAGAIN' || attempt >= retries) throw error;
  }
}
