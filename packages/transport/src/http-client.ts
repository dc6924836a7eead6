import { Readable } from 'node:stream';
import { IDEMPOTENCY_HEADER } from '@dsec/protocol';
import { DsecError, type ErrorCode, fromErrorBody, KIB, MIB, SECOND_MS } from '@dsec/std';
import { errors, Pool } from 'undici';
import { abortError, type Deadline, startDeadline } from './deadline.ts';
import { parseJson } from './http-body.ts';
import { dispatchOnce, type IncomingReply } from './http-reply.ts';
import { RETRY_POLICY, type RetryPolicy, withRetries } from './http-retry.ts';
import { newTraceparent, TRACEPARENT_HEADER } from './trace.ts';

export interface HttpClientOptions {
  /** `http://host:port`, without a path. With `socketPath` only its host is used, for the Host header. */
  readonly baseUrl: string;
  readonly socketPath?: string;
  /** Certificates in PEM by which an https server is known. Absent: those of Node. */
  readonly ca?: string;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Time for a whole answer; of a stream, for its beginning. */
  readonly deadlineMs?: number;
  readonly retries?: RetryPolicy;
  readonly connectionsMax?: number;
  /** Longest answer that is read as a whole. */
  readonly replyBytesMax?: number;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path and query. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes are sent again by a retry; a stream is sent once, as fast as the server takes it. */
  readonly body?: Uint8Array | AsyncIterable<Uint8Array>;
  /** Whether a repetition does no harm by itself. An idempotency key makes any request so. */
  readonly isIdempotent: boolean;
  readonly idempotencyKey?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly deadlineMs?: number | undefined;
  /** An answer whose body is silent for longer is `unavailable`. Absent: it may be. */
  readonly silenceMs?: number | undefined;
  /** Absent: the client's own. */
  readonly retries?: RetryPolicy | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface HttpReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/**
 * HTTP to one server. Errors of the server come as the `DsecError` that it sent; a server that
 * cannot be reached is `unavailable`, one that does not answer in time `deadline-exceeded`.
 * Redirects are not followed. What may be repeated is repeated after a transient error, with
 * growing pauses, within the deadline.
 */
export interface HttpClient {
  /** An answer read as a whole. */
  read(request: HttpRequest): Promise<HttpReply & { readonly body: Buffer }>;
  /**
   * An answer as a stream; leaving its loop ends the response. The deadline ends with the headers.
   * A stream that breaks off throws `unavailable`: what was read before is not the whole.
   */
  open(request: HttpRequest): Promise<HttpReply & { readonly body: AsyncIterable<Uint8Array> }>;
  /** Ends every connection. What is under way fails with `unavailable`. */
  close(): Promise<void>;
}

const ERROR_BYTES_MAX = 64 * KIB;

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const {
    deadlineMs: usualDeadlineMs = 30 * SECOND_MS,
    retries = RETRY_POLICY,
    replyBytesMax = 16 * MIB,
  } = options;
  const pool = new Pool(options.baseUrl, {
    connections: options.connectionsMax ?? 256,
    pipelining: 1,
    // Time is limited by the deadline of each request, and a stream may be silent for long.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 32 * KIB,
    connect: {
      timeout: 10 * SECOND_MS,
      ...(options.socketPath === undefined ? {} : { socketPath: options.socketPath }),
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    },
  });

  const attemptAll = async <T>(
    request: HttpRequest,
    use: (reply: IncomingReply, deadline: Deadline) => Promise<T>,
  ): Promise<T> => {
    const deadline = startDeadline(request.deadlineMs ?? usualDeadlineMs, request.signal);
    const attempt = async () => {
      try {
        return await use(await send(pool, request, options.headers, deadline.signal), deadline);
      } catch (thrown) {
        throw translate(thrown, deadline.signal);
      }
    };
    try {
      const usual = request.retries ?? retries;
      const policy = mayRepeat(request) ? usual : { ...usual, attemptsMax: 1 };
      return await withRetries(policy, deadline, attempt);
    } catch (thrown) {
      deadline.stop();
      throw thrown;
    }
  };

  return {
    read: (request) =>
      attemptAll(request, async ({ status, headers, read }, deadline) => {
        const body = await read(replyBytesMax);
        deadline.stop();
        return { status, headers, body };
      }),
    open: (request) =>
      attemptAll(request, async ({ status, headers, pieces }, deadline) => {
        deadline.lift();
        return { status, headers, body: limitedBy(deadline, pieces()) };
      }),
    close: () => pool.destroy(new DsecError('unavailable', 'the client was closed')),
  };
}

function mayRepeat({ isIdempotent, idempotencyKey, body }: HttpRequest): boolean {
  const isReplayable = body === undefined || body instanceof Uint8Array;
  return isReplayable && (isIdempotent || idempotencyKey !== undefined);
}

/** Sends once. Returns a success; throws what any other answer means. */
async function send(
  pool: Pool,
  request: HttpRequest,
  headers: Readonly<Record<string, string>> | undefined,
  signal: AbortSignal,
): Promise<IncomingReply> {
  if (signal.aborted) throw abortError(signal);
  const { method, target, body, idempotencyKey, traceparent } = request;
  const reply = await dispatchOnce(
    pool,
    {
      method,
      path: target,
      headers: {
        ...headers,
        ...request.headers,
        [TRACEPARENT_HEADER]: traceparent ?? newTraceparent(),
        ...(idempotencyKey === undefined ? {} : { [IDEMPOTENCY_HEADER]: idempotencyKey }),
      },
      body: body === undefined || body instanceof Uint8Array ? (body ?? null) : Readable.from(body),
      bodyTimeout: request.silenceMs ?? 0,
    },
    { signal, translate: (thrown) => translate(thrown, signal) },
  );
  if (reply.status >= 200 && reply.status < 300) return reply;
  throw await errorOf(reply);
}

async function errorOf({ status, headers, read }: IncomingReply): Promise<DsecError> {
  const error = errorOfBody(status, await read(ERROR_BYTES_MAX));
  const retryAfter = Number(headers['retry-after'] ?? Number.NaN);
  // What our servers say in the body is more exact than whole seconds.
  if (!Number.isFinite(retryAfter) || 'retryAfterMs' in error.details) return error;
  const retryAfterMs = Math.max(0, retryAfter) * SECOND_MS;
  return new DsecError(error.code, error.message, { details: { ...error.details, retryAfterMs } });
}

/** A server of ours sends an error body; whatever else stands in between is judged by its status. */
export function errorOfBody(status: number, body: Uint8Array): DsecError {
  try {
    const value = parseJson(body) as { code?: unknown; message?: unknown; details?: unknown };
    if (typeof value?.code === 'string') {
      return fromErrorBody({ code: value.code, message: value.message, details: value.details });
    }
  } catch {
    // Not JSON: the status has to do.
  }
  return new DsecError(CODE_OF_STATUS.get(status) ?? 'protocol', `the server answered ${status}`, {
    details: { status },
  });
}

const CODE_OF_STATUS: ReadonlyMap<number, ErrorCode> = new Map([
  [400, 'invalid-argument'],
  [401, 'unauthenticated'],
  [403, 'permission-denied'],
  [404, 'not-found'],
  [409, 'conflict'],
  [413, 'too-large'],
  [429, 'rate-limited'],
  [500, 'internal'],
  [502, 'unavailable'],
  [503, 'unavailable'],
  [504, 'deadline-exceeded'],
]);

async function* limitedBy<T>(deadline: Deadline, pieces: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* pieces;
  } finally {
    deadline.stop();
  }
}

/** What fails when there is nobody to connect to. */
const CONNECT_CALLS: ReadonlySet<unknown> = new Set(['connect', 'getaddrinfo']);

/** Errors of the connection in the terms of the table. The signal's own error goes before what it caused. */
function translate(thrown: unknown, signal: AbortSignal): DsecError {
  if (signal.aborted) return abortError(signal);
  if (thrown instanceof DsecError) return thrown;
  if (thrown instanceof errors.HTTPParserError || thrown instanceof errors.HeadersOverflowError) {
    return new DsecError('protocol', 'the server does not speak HTTP', { cause: thrown });
  }
  if (thrown instanceof errors.InvalidArgumentError) {
    return new DsecError('invalid-argument', thrown.message, { cause: thrown });
  }
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  const details = CONNECT_CALLS.has((thrown as { syscall?: unknown })?.syscall)
    ? { reached: false }
    : {};
  const message = `the server cannot be reached: ${reason}`;
  return new DsecError('unavailable', message, { cause: thrown, details });
}
