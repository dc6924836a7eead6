/**
 * The table of error codes. Every client of DSec routes on `code`, never on the message text; status, retry
 * advice and exit code follow from it. `docs/reference/errors.md` is generated from this table
 * (`npm run generate`).
 */

export interface ErrorCodeRow {
  /** HTTP status of a response that carries this code. */
  readonly status: number;
  /** Whether the same request may succeed later without a change by the caller. */
  readonly retryable: boolean;
  /** Exit code of `dsec` when it ends with this error (1 to 63; above that are a sandbox's own). */
  readonly exitCode: number;
  /** What the caller can do about it, one sentence. */
  readonly remedy: string;
}

export const ERROR_CODES = {
  'invalid-argument': row(400, false, 2, 'Correct the named field and send the request again.'),
  unauthenticated: row(401, false, 3, 'Send a valid, unexpired API key or ticket.'),
  'permission-denied': row(403, false, 4, 'Use a key whose scopes allow this operation.'),
  'not-found': row(
    404,
    false,
    5,
    'Check the name or id; list what exists with the matching ls command.',
  ),
  'already-exists': row(409, false, 6, 'Choose another name, or use the existing object.'),
  conflict: row(409, true, 7, 'Read the current revision and try again.'),
  'idempotency-conflict': row(
    409,
    false,
    8,
    'Use a new idempotency key for a request with another body.',
  ),
  'state-conflict': row(
    409,
    false,
    9,
    'The sandbox is in a state that does not allow this; look at its state first.',
  ),
  'too-large': row(
    413,
    false,
    10,
    'Send less at once, or use the streaming form of the operation.',
  ),
  'rate-limited': row(429, true, 11, 'Wait for the time in Retry-After, then try again.'),
  'quota-exceeded': row(429, true, 12, 'Stop something, or ask for a larger quota.'),
  overloaded: row(
    503,
    true,
    13,
    'The node or fleet is at its limit; try again later or on another node.',
  ),
  unavailable: row(503, true, 14, 'The service is not reachable now; try again.'),
  'deadline-exceeded': row(504, true, 15, 'Allow more time, or find out what is slow.'),
  cancelled: row(499, false, 16, 'The caller gave up; nothing to do.'),
  unsupported: row(
    501,
    false,
    17,
    'This node or backend cannot do it; `dsec doctor` says what is missing.',
  ),
  internal: row(500, true, 18, 'A fault in DSec: report it with the trace id.'),
  'data-loss': row(
    500,
    false,
    19,
    'Stored bytes do not match their digest; restore or import the object again.',
  ),
  'storage-full': row(507, true, 20, 'Free disk space or inodes, then try again.'),
  'import-limit': row(
    413,
    false,
    21,
    'The archive exceeds an import limit; raise that limit if the source is trusted.',
  ),
  'import-invalid': row(422, false, 22, 'The archive or image is malformed; build it again.'),
  'layer-invalid': row(
    422,
    false,
    23,
    'The layer is damaged or uses a feature outside the whitelist; import it again.',
  ),
  protocol: row(502, false, 24, 'The peer broke the wire protocol; its connection was closed.'),
  'freeze-timeout': row(
    503,
    true,
    25,
    'The sandbox did not freeze in time; try again when it is less busy.',
  ),
  'agent-lost': row(502, false, 26, 'The agent inside the sandbox is gone; create a new sandbox.'),
  'command-not-found': row(
    422,
    false,
    27,
    'The command does not exist inside the sandbox or cannot be executed.',
  ),
  'output-lost': row(
    410,
    false,
    28,
    'The requested output offset is no longer kept; read from the offset given.',
  ),
  'secret-lost': row(
    410,
    false,
    30,
    'Revoke the key and make another one; or, if it was rotated, rotate it again.',
  ),
  'grade-invalid': row(
    422,
    false,
    29,
    'The grading run did not report the expected tests; it is not a score.',
  ),
} as const satisfies Record<string, ErrorCodeRow>;

export type ErrorCode = keyof typeof ERROR_CODES;

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERROR_CODES, value);
}

function row(status: number, retryable: boolean, exitCode: number, remedy: string): ErrorCodeRow {
  return { status, retryable, exitCode, remedy };
}
