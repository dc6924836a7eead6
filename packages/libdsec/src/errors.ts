import {
  asDsecError,
  DsecError as CodedError,
  type DsecErrorOptions as CodedErrorOptions,
  type ErrorCode,
} from '@dsec/std';
import { type Asked, messageFor } from './asked.ts';
import type { ExecResult } from './exec-result.ts';

export interface DsecErrorOptions extends CodedErrorOptions {
  readonly requestId?: string | undefined;
}

/**
 * Everything that DSec refuses or fails to do. There is a class for each code of the error table
 * (docs/reference/errors.md), by which it is caught; `status`, `retryable`, `remedy` and `details` say more.
 */
export class DsecError extends CodedError {
  /** By which the server's log names the request; absent where no request was made. */
  readonly requestId: string | undefined;

  constructor(code: ErrorCode, message: string, options: DsecErrorOptions = {}) {
    super(code, message, options);
    this.name = new.target.name;
    this.requestId = options.requestId;
  }
}

export class InvalidArgumentError extends DsecError {}
export class UnauthenticatedError extends DsecError {}
export class PermissionDeniedError extends DsecError {}
export class NotFoundError extends DsecError {}
export class AlreadyExistsError extends DsecError {}
export class ConflictError extends DsecError {}
export class IdempotencyConflictError extends DsecError {}
export class StateConflictError extends DsecError {}
export class TooLargeError extends DsecError {}
export class RateLimitedError extends DsecError {}
export class QuotaExceededError extends DsecError {}
export class OverloadedError extends DsecError {}
export class UnavailableError extends DsecError {}
export class DeadlineExceededError extends DsecError {}
export class CancelledError extends DsecError {}
export class UnsupportedError extends DsecError {}
export class InternalError extends DsecError {}
export class DataLossError extends DsecError {}
export class StorageFullError extends DsecError {}
export class ImportLimitError extends DsecError {}
export class ImportInvalidError extends DsecError {}
export class LayerInvalidError extends DsecError {}
export class ProtocolError extends DsecError {}
export class FreezeTimeoutError extends DsecError {}
export class AgentLostError extends DsecError {}
export class CommandNotFoundError extends DsecError {}
export class OutputLostError extends DsecError {}
export class SecretLostError extends DsecError {}
export class GradeInvalidError extends DsecError {}

/** The class of each code. */
export const ERROR_CLASSES = {
  'invalid-argument': InvalidArgumentError,
  unauthenticated: UnauthenticatedError,
  'permission-denied': PermissionDeniedError,
  'not-found': NotFoundError,
  'already-exists': AlreadyExistsError,
  conflict: ConflictError,
  'idempotency-conflict': IdempotencyConflictError,
  'state-conflict': StateConflictError,
  'too-large': TooLargeError,
  'rate-limited': RateLimitedError,
  'quota-exceeded': QuotaExceededError,
  overloaded: OverloadedError,
  unavailable: UnavailableError,
  'deadline-exceeded': DeadlineExceededError,
  cancelled: CancelledError,
  unsupported: UnsupportedError,
  internal: InternalError,
  'data-loss': DataLossError,
  'storage-full': StorageFullError,
  'import-limit': ImportLimitError,
  'import-invalid': ImportInvalidError,
  'layer-invalid': LayerInvalidError,
  protocol: ProtocolError,
  'freeze-timeout': FreezeTimeoutError,
  'agent-lost': AgentLostError,
  'command-not-found': CommandNotFoundError,
  'output-lost': OutputLostError,
  'secret-lost': SecretLostError,
  'grade-invalid': GradeInvalidError,
} as const satisfies Record<ErrorCode, typeof DsecError>;

/** A wait of this client was over before what it waited for came. */
export class Timeout extends DeadlineExceededError {
  constructor(message: string) {
    super('deadline-exceeded', message);
  }
}

/** A command that was to be checked did not exit with 0. That is the command's doing, not DSec's. */
export class CommandFailed extends Error {
  readonly result: ExecResult;

  constructor(result: ExecResult) {
    super(failureOf(result));
    this.name = 'CommandFailed';
    this.result = result;
  }
}

const SHOWN_LENGTH = 500;

function failureOf({ exitCode, signal, timedOut, oomKilled, stderr }: ExecResult): string {
  const how = signal === undefined ? `exited with ${exitCode}` : `was ended by signal ${signal}`;
  const why = timedOut ? ', out of time' : oomKilled ? ', out of memory' : '';
  const last = stderr.trimEnd().slice(-SHOWN_LENGTH);
  return `the command ${how}${why}${last === '' ? '' : `: ${last}`}`;
}

/** Anything thrown, as the class of its code, its message with what was asked for. */
export function clientErrorOf(thrown: unknown, requestId?: string, asked: Asked = {}): DsecError {
  if (thrown instanceof DsecError) return thrown;
  const error = asDsecError(thrown);
  const { code, details, cause } = error;
  const message = messageFor(error, asked);
  return new ERROR_CLASSES[code](code, message, { details, cause: cause ?? thrown, requestId });
}
