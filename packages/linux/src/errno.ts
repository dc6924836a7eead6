import { constants } from 'node:os';
import { DsecError, type ErrorCode, type ErrorDetails } from '@dsec/std';

/** Numbers that Node's own table lacks; the same on x86_64 and aarch64. */
const EXTRA_NAMES = new Map([
  [15, 'ENOTBLK'],
  [74, 'EBADMSG'],
  [83, 'ELIBEXEC'],
  [117, 'EUCLEAN'],
  [121, 'EREMOTEIO'],
  [126, 'ENOKEY'],
]);

const NAMES: ReadonlyMap<number, string> = new Map([
  ...EXTRA_NAMES,
  ...Object.entries(constants.errno)
    // EAGAIN and EOPNOTSUPP each have a second name for the same number.
    .filter(([name]) => name !== 'EWOULDBLOCK' && name !== 'ENOTSUP')
    .map(([name, value]): [number, string] => [value, name]),
]);

/** What a failed system call means to a caller. Anything absent is `internal`: a fault in DSec. */
const CODES: Readonly<Record<string, ErrorCode>> = {
  ENOSPC: 'storage-full',
  EDQUOT: 'storage-full',
  EPERM: 'permission-denied',
  EACCES: 'permission-denied',
  EROFS: 'permission-denied',
  ENOSYS: 'unsupported',
  EOPNOTSUPP: 'unsupported',
  ENODEV: 'unsupported',
  ENOTBLK: 'unsupported',
  EEXIST: 'already-exists',
  ENOENT: 'not-found',
  ESRCH: 'not-found',
  ENODATA: 'not-found',
  ENXIO: 'not-found',
  EBUSY: 'conflict',
  ETXTBSY: 'conflict',
  ENOTEMPTY: 'conflict',
  ESTALE: 'conflict',
  EAGAIN: 'unavailable',
  EINTR: 'unavailable',
  EIO: 'unavailable',
  ETIMEDOUT: 'deadline-exceeded',
  EINVAL: 'invalid-argument',
  ELOOP: 'invalid-argument',
  ENOTDIR: 'invalid-argument',
  EISDIR: 'invalid-argument',
  EXDEV: 'invalid-argument',
  ENAMETOOLONG: 'invalid-argument',
  E2BIG: 'too-large',
  EFBIG: 'too-large',
  ERANGE: 'too-large',
  EOVERFLOW: 'too-large',
  ENOMEM: 'overloaded',
  EMFILE: 'overloaded',
  ENFILE: 'overloaded',
  EUSERS: 'overloaded',
  EUCLEAN: 'data-loss',
  EBADMSG: 'data-loss',
};

/** `2` → `ENOENT`; a number without a name becomes `E<number>`. */
export function errnoName(errno: number): string {
  return NAMES.get(errno) ?? `E${errno}`;
}

/**
 * The code that a failed system call gets. ENODEV, for example, is what fsopen(2) says of a missing file
 * system.
 */
export function codeOfErrno(errno: number): ErrorCode {
  return CODES[errnoName(errno)] ?? 'internal';
}

/**
 * The error of a failed system call. `details` always holds `syscall`, `errno` and `errnoName`; `subject`
 * (a path, an option) goes into the message and is not escaped: show messages to people through
 * `escapeForTerminal`.
 */
export function syscallError(
  syscall: string,
  errno: number,
  subject = '',
  more: ErrorDetails = {},
): DsecError {
  const name = errnoName(errno);
  const message = subject === '' ? `${syscall}: ${name}` : `${syscall} ${subject}: ${name}`;
  return new DsecError(codeOfErrno(errno), message, {
    details: { syscall, errno, errnoName: name, ...more },
  });
}

/** The errno of an error that came from `syscallError`, by name; `undefined` for any other error. */
export function errnoOf(thrown: unknown): string | undefined {
  const name = thrown instanceof DsecError ? thrown.details.errnoName : undefined;
  return typeof name === 'string' ? name : undefined;
}
