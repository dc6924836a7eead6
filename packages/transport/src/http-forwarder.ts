import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { DsecError, KIB, SECOND_MS } from '@dsec/std';
import { errors, Pool } from 'undici';
import { abortError } from './deadline.ts';
import type { ListenAddress } from './http-listener.ts';
import { dispatchOnce, type IncomingReply, type ReplyHeaders } from './http-reply.ts';

export interface ForwarderOptions {
  readonly address: ListenAddress;
  readonly connectionsMax?: number;
  readonly connectMs?: number;
}

export interface ForwardRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A stream is sent as fast as the server takes it. */
  readonly body?: Buffer | Readable | undefined;
  readonly signal: AbortSignal;
}

export interface ForwardReply extends Omit<IncomingReply, 'headers' | 'pieces' | 'pipe'> {
  /** Those that concern the message; those of the connection are left out. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /**
   * Head and body into a response, as fast as its reader takes them. Resolves at the end; when either side
   * breaks off, both do, and it rejects.
   */
  pipe(response: ServerResponse): Promise<void>;
}

/** Passes requests on to one server, a byte at a time as far as anybody can see: nothing is kept. */
export interface HttpForwarder {
  /**
   * One attempt; resolves with the head of the answer. Rejects with `unavailable`, with `details.sent` false
   * where nothing can have arrived, with `protocol`, or with the signal's error.
   */
  send(request: ForwardRequest): Promise<ForwardReply>;
  /** Ends every connection. */
  close(): Promise<void>;
}

/** What concerns a connection, and is never passed on. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export function createHttpForwarder(options: ForwarderOptions): HttpForwarder {
  const { address, connectionsMax = 1024, connectMs = 5 * SECOND_MS } = options;
  const pool = new Pool(baseUrlOf(address), {
    connections: connectionsMax,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 32 * KIB,
    connect: {
      timeout: connectMs,
      ...('socketPath' in address ? { socketPath: address.socketPath } : {}),
    },
  });
  return {
    async send({ method, target, headers, body, signal }) {
      if (signal.aborted) throw abortError(signal);
      const request = { method, path: target, headers, body: body ?? null };
      const translate = (thrown: unknown) => errorOf(thrown, signal);
      return forwardable(await dispatchOnce(pool, request, { signal, translate }));
    },
    close: () => pool.destroy(new DsecError('unavailable', 'the server is closing')),
  };
}

function forwardable(reply: IncomingReply): ForwardReply {
  const { status, read, open } = reply;
  const headers = passedOn(reply.headers);
  return {
    ...{ status, headers, read, open },
    pipe: (response) => reply.pipe(response, () => void response.writeHead(status, headers)),
  };
}

function passedOn(received: ReplyHeaders): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(received)) {
    if (value !== undefined && !OF_THE_CONNECTION.has(name)) headers[name] = value;
  }
  return headers;
}

export function baseUrlOf(address: ListenAddress): string {
  if ('socketPath' in address) return 'http://localhost';
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return `http://${host}:${address.port}`;
}

/** A connection to where a server listens. */
export function connectTo(address: ListenAddress): Socket {
  return 'socketPath' in address
    ? connect(address.socketPath)
    : connect({ ...address, noDelay: true });
}

function errorOf(thrown: unknown, signal: AbortSignal): DsecError {
  if (signal.aborted) return abortError(signal);
  if (thrown instanceof DsecError) return thrown;
  if (thrown instanceof errors.HTTPParserError || thrown instanceof errors.HeadersOverflowError) {
    return new DsecError('protocol', 'the server does not speak HTTP', { cause: thrown });
  }
  const { message, code } = thrown as { message?: string; code?: string };
  const sent = !NEVER_SENT.has(String(code));
  return new DsecError('unavailable', `the server cannot be reached: ${message}`, {
    cause: thrown,
    details: { sent },
  });
}

const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);
