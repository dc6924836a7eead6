import { syscallError } from './errno.ts';
import { rawSyscall, syscall } from './syscall.ts';

/**
 * Parts of files: where data is, how to give blocks back, how to copy inside the kernel. All of it blocks.
 */

const SEEK_DATA = 3;
const SEEK_HOLE = 4;
const FALLOC_FL_KEEP_SIZE = 1;
const FALLOC_FL_PUNCH_HOLE = 2;

/** A half-open range of bytes. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The first byte of data at or after `offset`; `undefined` when only a hole or the end follows. Moves the
 * position.
 */
export function seekData(fd: number, offset: number): number | undefined {
  const result = rawSyscall('lseek', fd, offset, SEEK_DATA);
  if (result >= 0) return result;
  const error = syscallError('lseek', -result);
  if (error.details.errnoName === 'ENXIO') return undefined;
  throw error;
}

/** The first hole at or after `offset`; the end of the file counts as one. Moves the position. */
export function seekHole(fd: number, offset: number): number {
  return syscall('lseek', [fd, offset, SEEK_HOLE]);
}

/**
 * The ranges that hold data below `end`, in order. A file that another process writes meanwhile gives a
 * mixture. A file system without holes gives one range. `too-large` beyond 2^53 bytes.
 */
export function* dataRanges(fd: number, end: number): Generator<ByteRange> {
  for (let position = 0; position < end; ) {
    const start = seekData(fd, position);
    if (start === undefined || start >= end) return;
    position = Math.min(seekHole(fd, start), end);
    // A writer that punches between the two calls can leave an empty range.
    if (position > start) yield { start, end: position };
    else position = start + 1;
  }
}

/**
 * Gives the blocks of a range back; it reads as zeros and the size stays. `unsupported` where the file
 * system can't.
 */
export function punchHole(fd: number, offset: number, length: number): void {
  syscall('fallocate', [fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length]);
}

/** Reserves blocks, so that a later write cannot meet `storage-full`. Grows the file unless `keepSize`. */
export function allocateRange(
  fd: number,
  offset: number,
  length: number,
  options: { readonly keepSize?: boolean } = {},
): void {
  syscall('fallocate', [fd, options.keepSize ? FALLOC_FL_KEEP_SIZE : 0, offset, length]);
}

/**
 * Copies up to `length` bytes inside the kernel, sharing blocks where the file system can. Returns the
 * bytes copied: fewer than asked is normal, 0 is the end of the source. Positions of both descriptors stay.
 * Across file system types it fails with `invalid-argument` (EXDEV): read and write then.
 */
export function copyFileRange(
  source: { readonly fd: number; readonly offset: number },
  target: { readonly fd: number; readonly offset: number },
  length: number,
): number {
  const from = Buffer.alloc(8);
  const to = Buffer.alloc(8);
  from.writeBigInt64LE(BigInt(source.offset));
  to.writeBigInt64LE(BigInt(target.offset));
  return syscall('copy_file_range', [source.fd, from, target.fd, to, length, 0]);
}
