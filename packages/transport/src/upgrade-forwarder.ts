import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { DsecError, KIB, SECOND_MS } from '@dsec/std';
import { startDeadline } from './deadline.ts';
import { errorOfBody } from './http-client.ts';
import { connectTo } from './http-forwarder.ts';
import type { ListenAddress } from './http-listener.ts';
import type { UpgradedConnection } from './http-routes.ts';

export interface UpgradeRequest {
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Time until the connection is a WebSocket. */
  readonly deadlineMs?: number;
}

/** A WebSocket that a server has opened for somebody else. */
export interface OpenedUpgrade extends UpgradedConnection {
  /** The head of the server's answer, as it came. */
  readonly answer: Buffer;
}

const HEAD_BYTES_MAX = 32 * KIB;
const BODY_BYTES_MAX = 64 * KIB;
const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Asks a server to make a connection a WebSocket, by the key that the caller has sent, and leaves the
 * messages alone. A refusal comes as the `DsecError` that the server sent; else `unavailable` as for
 * `HttpForwarder`, `protocol`, `deadline-exceeded` or the signal's error.
 */
export async function openUpgrade(
  address: ListenAddress,
  { target, headers, signal, deadlineMs = 30 * SECOND_MS }: UpgradeRequest,
): Promise<OpenedUpgrade> {
  const deadline = startDeadline(deadlineMs, signal);
  const socket = connectTo(address);
  const onAbort = () => socket.destroy(deadline.signal.reason as Error);
  deadline.signal.addEventListener('abort', onAbort, { once: true });
  if (deadline.signal.aborted) onAbort();
  try {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    socket.write([`GET ${target} HTTP/1.1`, 'host: localhost', ...lines, '', ''].join('\r\n'));
    const { answer, head } = await readHead(socket);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer.toString('latin1'))?.[1]);
    if (status === 101) return { socket, answer, head };
    throw errorOfBody(status, bodyOf(answer, await readRest(socket, head)));
  } catch (thrown) {
    socket.destroy();
    throw translate(thrown);
  } finally {
    deadline.signal.removeEventListener('abort', onAbort);
    deadline.stop();
  }
}

/** Bytes from each to the other until both are gone; one that breaks takes the other along. */
export function joinConnections(a: Duplex, b: Duplex): Promise<void> {
  a.pipe(b);
  b.pipe(a);
  return new Promise((resolve) => {
    let open = 2;
    for (const [one, other] of [
      [a, b],
      [b, a],
    ] as const) {
      one.on('error', () => other.destroy());
      one.once('close', () => {
        // What is on its way still arrives; a peer that takes nothing is not waited for.
        if (one.readableEnded) setTimeout(() => other.destroy(), SECOND_MS).unref();
        else other.destroy();
        open -= 1;
        if (open === 0) resolve();
      });
    }
  });
}

async function readHead(socket: Socket): Promise<{ answer: Buffer; head: Buffer }> {
  let received = Buffer.alloc(0);
  for (;;) {
    const chunk = await readSome(socket);
    if (chunk === undefined) throw new DsecError('unavailable', 'the server closed the connection');
    received = Buffer.concat([received, chunk]);
    const at = received.indexOf(HEAD_END);
    if (at >= 0) {
      const end = at + HEAD_END.length;
      return { answer: received.subarray(0, end), head: received.subarray(end) };
    }
    if (received.length > HEAD_BYTES_MAX) {
      throw new DsecError('protocol', 'the head of the answer does not end');
    }
  }
}

/** After a refusal the server closes. */
async function readRest(socket: Socket, head: Buffer): Promise<Buffer> {
  const chunks = [head];
  let bytes = head.length;
  for (;;) {
    const chunk = await readSome(socket);
    if (chunk === undefined) return Buffer.concat(chunks, bytes);
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new DsecError('protocol', 'the answer does not end');
  }
}

/** Without its length, if it came in one chunk or with a length: all that a server of ours sends. */
function bodyOf(answer: Buffer, rest: Buffer): Buffer {
  const isChunked = /\r\ntransfer-encoding: *chunked\r\n/i.test(answer.toString('latin1'));
  if (!isChunked) return rest;
  const lineEnd = rest.indexOf('\r\n');
  const length = Number.parseInt(rest.subarray(0, lineEnd).toString('latin1'), 16);
  return rest.subarray(lineEnd + 2, lineEnd + 2 + length);
}

function readSome(socket: Socket): Promise<Buffer | undefined> {
  const chunk = socket.read() as Buffer | null;
  if (chunk !== null) return Promise.resolve(chunk);
  return new Promise((resolve, reject) => {
    const done = (settle: () => void) => {
      socket.off('readable', onReadable);
      socket.off('end', onEnd);
      socket.off('error', onError);
      socket.off('close', onEnd);
      settle();
    };
    const onReadable = () => {
      const read = socket.read() as Buffer | null;
      if (read !== null) done(() => resolve(read));
    };
    const onEnd = () => done(() => resolve(undefined));
    const onError = (error: Error) => done(() => reject(error));
    socket.on('readable', onReadable);
    socket.once('end', onEnd);
    socket.once('close', onEnd);
    socket.once('error', onError);
  });
}

function translate(thrown: unknown): DsecError {
  if (thrown instanceof DsecError) return thrown;
  const { message, syscall } = thrown as { message?: string; syscall?: string };
  return new DsecError('unavailable', `the server cannot be reached: ${message}`, {
    cause: thrown,
    details: { sent: syscall !== 'connect' },
  });
}
