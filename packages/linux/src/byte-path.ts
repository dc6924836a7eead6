import { DsecError } from '@dsec/std';

/** A path as the kernel sees it: any bytes but NUL. A string is its UTF-8 form. */
export type BytePath = string | Uint8Array;

/** A file named by path (a final symbolic link is not followed) or by an open descriptor, O_PATH included. */
export type FileTarget = BytePath | number;

/** The descriptor that stands for the current directory in calls that take one. */
export const AT_FDCWD = -100;

const SHOWN_LENGTH_MAX = 200;

/** The bytes of a path. */
export function pathBytes(path: BytePath): Buffer {
  if (typeof path === 'string') return Buffer.from(path, 'utf8');
  return Buffer.from(path.buffer, path.byteOffset, path.byteLength);
}

/**
 * A NUL-terminated copy for the kernel. Throws `invalid-argument` on a NUL inside: the kernel would cut
 * there.
 */
export function cString(path: BytePath): Buffer {
  const bytes = pathBytes(path);
  if (bytes.includes(0)) {
    throw new DsecError('invalid-argument', `${shownPath(path)} holds a NUL byte`);
  }
  const terminated = Buffer.alloc(bytes.length + 1);
  bytes.copy(terminated);
  return terminated;
}

/** A path for a message: quoted, control characters escaped, cut after 200 characters. */
export function shownPath(path: BytePath): string {
  const text = pathBytes(path).toString('utf8');
  const cut = text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
  return JSON.stringify(cut);
}

/** The path through which the kernel reopens a descriptor of this process, O_PATH ones included. */
export function descriptorPath(fd: number): string {
  return `/proc/self/fd/${fd}`;
}
