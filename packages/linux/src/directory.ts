import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { asDsecError, assert, DsecError } from '@dsec/std';
import { cString } from './byte-path.ts';
import { syscall } from './syscall.ts';

/** Names in a directory and targets of links, as bytes in latin1 form and by descriptor. Calls block. */

const BATCH_BYTES = 32_768;
/**
 * Offsets in `struct linux_dirent64`: after inode and position come the record's length, a type and the
 * name.
 */
const RECORD_LENGTH_AT = 16;
const NAME_AT = 19;
/** PATH_MAX: no file system keeps a longer target. */
const TARGET_BYTES_MAX = 4096;

/**
 * The names in a directory, without `.` and `..`, in the file system's order, in memory that does not grow
 * with their number. `fd` is open for reading (not O_PATH) and at the start; its position moves. Changes
 * meanwhile may show or not.
 */
export function* directoryNames(fd: number): Generator<string> {
  const batch = Buffer.allocUnsafe(BATCH_BYTES);
  for (;;) {
    const filled = syscall('getdents64', [fd, batch, batch.length]);
    if (filled === 0) return;
    for (let at = 0; at < filled; ) {
      const length = batch.readUInt16LE(at + RECORD_LENGTH_AT);
      assert(length > NAME_AT && at + length <= filled, 'the kernel gives whole directory records');
      const end = batch.indexOf(0, at + NAME_AT);
      const name = batch.toString('latin1', at + NAME_AT, end);
      at += length;
      if (name !== '.' && name !== '..') yield name;
    }
  }
}

/** The target of the symbolic link that an O_PATH descriptor holds. */
export function readLink(fd: number): string {
  const target = Buffer.allocUnsafe(TARGET_BYTES_MAX + 1);
  const length = syscall('readlinkat', [fd, cString(''), target, target.length]);
  if (length > TARGET_BYTES_MAX) {
    throw new DsecError('too-large', `a link's target is longer than ${TARGET_BYTES_MAX} bytes`);
  }
  return target.toString('latin1', 0, length);
}

/**
 * Makes a directory and what is missing above it, all with the same mode; those that exist stay as they are.
 * Node's recursive form never ends below a place that takes no directories, such as /proc, and calls a full
 * disk ENOENT.
 */
export function makeDirectories(path: string, mode = 0o777): void {
  if (makeDirectory(path, mode)) return;
  const parent = dirname(path);
  if (parent !== path) makeDirectories(parent, mode);
  if (!makeDirectory(path, mode)) {
    throw new DsecError('not-found', `${path} cannot be made: ${parent} takes no directories`);
  }
}

/** False when the directory above is missing, or says that it is. */
function makeDirectory(path: string, mode: number): boolean {
  try {
    mkdirSync(path, mode);
    return true;
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code;
    if (code === 'EEXIST') return true;
    if (code === 'ENOENT') return false;
    throw asDsecError(thrown);
  }
}
