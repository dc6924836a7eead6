import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { DsecError, KIB, SECOND_MS } from '@dsec/std';
import { WebSocket } from 'ws';
import { startDeadline } from './deadline.ts';
import { readBounded } from './http-body.ts';
import { errorOfBody } from './http-client.ts';
import {
  createWebSocketChannel,
  WEBSOCKET_LIMITS,
  type WebSocketChannel,
  type WebSocketLimits,
} from './websocket-channel.ts';

export interface WebSocketConnectOptions {
  /** `http://host:port` as for the HTTP client. With `socketPath` only its host is used. */
  readonly baseUrl: string;
  readonly socketPath?: string;
  /** As for the HTTP client. */
  readonly ca?: string;
  /** Path and query. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Time until the channel is open. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  readonly limits?: Partial<WebSocketLimits>;
}

const ERROR_BYTES_MAX = 64 * KIB;

/**
 * Opens a WebSocket. A refusal comes as the `DsecError` that the server sent; otherwise `unavailable`,
 * `deadline-exceeded`, `protocol` or the signal's error. Redirects are not followed.
 */
export async function connectWebSocket(
  options: WebSocketConnectOptions,
): Promise<WebSocketChannel> {
  const limits = { ...WEBSOCKET_LIMITS, ...options.limits };
  const { socketPath, ca } = options;
  const deadline = startDeadline(options.deadlineMs ?? 30 * SECOND_MS, options.signal);
  const url = new URL(options.target, options.baseUrl.replace(/^http/, 'ws'));
  const socket = new WebSocket(url, {
    ...(options.headers === undefined ? {} : { headers: options.headers }),
    perMessageDeflate: false,
    maxPayload: limits.messageBytesMax,
    ...(ca === undefined ? {} : { ca }),
    ...(socketPath === undefined ? {} : { createConnection: () => connect(socketPath) }),
  });
  try {
    return await new Promise<WebSocketChannel>((resolve, reject) => {
      const onAbort = () => reject(deadline.signal.reason);
      deadline.signal.addEventListener('abort', onAbort, { once: true });
      if (deadline.signal.aborted) onAbort();
      socket.once('open', () => resolve(createWebSocketChannel(socket, limits)));
      socket.once('unexpected-response', (_request, response) => {
        refusalOf(response).then(reject, reject);
      });
      socket.on('error', (cause) => reject(connectError(cause)));
    });
  } catch (thrown) {
    socket.terminate();
    throw thrown;
  } finally {
    deadline.stop();
  }
}

async function refusalOf(response: IncomingMessage): Promise<DsecError> {
  return errorOfBody(response.statusCode ?? 0, await readBounded(response, ERROR_BYTES_MAX));
}

function connectError(cause: Error & { code?: string; syscall?: string }): DsecError {
  const isOfNetwork = cause.syscall !== undefined || cause.code === 'ECONNRESET';
  return isOfNetwork
    ? new DsecError('unavailable', `the server cannot be reached: ${cause.message}`, { cause })
    : new DsecError('protocol', 'the server does not speak WebSocket', { cause });
}
