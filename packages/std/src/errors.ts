import { ERROR_CODES, type ErrorCode, isErrorCode } from './codes.ts';
import { remedyOf } from './remedies.ts';

/** Data that a program may want next to a code. Values are small and hold no secrets. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean>>;

export interface DsecErrorOptions {
  readonly cause?: unknown;
  readonly details?: ErrorDetails;
}

/** The one error class of DSec. Route on `code`; the message is for people and may change. */
export class DsecError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, options: DsecErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'DsecError';
    this.code = code;
    this.details = options.details ?? {};
  }

  get status(): number {
    return ERROR_CODES[this.code].status;
  }

  get retryable(): boolean {
    return ERROR_CODES[this.code].retryable;
  }

  get exitCode(): number {
    return ERROR_CODES[this.code].exitCode;
  }

  get remedy(): string {
    return remedyOf(this.code, this.details.about);
  }
}

/** The wire form of an error, the same in every response body. */
export interface ErrorBody {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryable: boolean;
  readonly remedy: string;
  readonly details: ErrorDetails;
}

export function toErrorBody(error: DsecError): ErrorBody {
  const { code, message, retryable, remedy, details } = error;
  return { code, message, retryable, remedy, details };
}

/** Rebuilds an error from its wire form. A code that this version does not know becomes `internal`. */
export function fromErrorBody(body: {
  code: unknown;
  message: unknown;
  details?: unknown;
}): DsecError {
  const code = isErrorCode(body.code) ? body.code : 'internal';
  const message = typeof body.message === 'string' ? body.message : 'error without a message';
  const details = isDetails(body.details) ? body.details : {};
  return new DsecError(code, message, { details });
}

function isDetails(value: unknown): value is ErrorDetails {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((v) => ['string', 'number', 'boolean'].includes(typeof v));
}

/** Turns anything thrown into a `DsecError`, keeping it as the cause. */
export function asDsecError(thrown: unknown): DsecError {
  if (thrown instanceof DsecError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new DsecError(codeOfErrno(thrown), message, { cause: thrown });
}

/** Codes of Node's system errors that have a plain meaning to a caller; everything else is `internal`. */
function codeOfErrno(thrown: unknown): ErrorCode {
  // What an AbortSignal gives as its reason; these carry a number as their code.
  const name = (thrown as { name?: unknown } | null | undefined)?.name;
  if (name === 'AbortError') return 'cancelled';
  if (name === 'TimeoutError') return 'deadline-exceeded';
  const errno = (thrown as { code?: unknown } | null | undefined)?.code;
  if (errno === 'ENOSPC' || errno === 'EDQUOT') return 'storage-full';
  if (errno === 'ENOENT') return 'not-found';
  if (errno === 'EACCES' || errno === 'EPERM' || errno === 'EROFS') return 'permission-denied';
  if (errno === 'EMFILE' || errno === 'ENFILE' || errno === 'ENOMEM') return 'overloaded';
  return PATH_ERRORS.has(errno) ? 'invalid-argument' : 'internal';
}

/** A path that cannot mean what the caller wants, as nearly always somebody typed it. */
const PATH_ERRORS: ReadonlySet<unknown> = new Set([
  'ENOTDIR',
  'EISDIR',
  'ELOOP',
  'ENAMETOOLONG',
  'EXDEV',
]);

/** Marks a place that a closed union makes unreachable. */
export function assertNever(value: never): never {
  throw new DsecError('internal', `unexpected value ${JSON.stringify(value)}`);
}

/** An invariant of our own code. A failure is a fault in DSec, never bad input. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new DsecError('internal', `invariant broken: ${message}`);
}
