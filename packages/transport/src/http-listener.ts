import { chmodSync, linkSync, lstatSync, mkdtempSync, rmSync } from 'node:fs';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type ListenOptions, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { DsecError } from '@dsec/std';
import { expectationFailure, parserFailure, rawResponse } from './http-errors.ts';
import type { HttpServerLimits } from './http-limits.ts';
import { type TlsFiles, tlsOptionsOf, watchTlsFiles } from './tls-files.ts';
import { SOCKET_PATH_BYTES_MAX } from './unix-socket.ts';

export type ListenAddress =
  | { readonly host: string; readonly port: number }
  /** A unix socket, for its owner only. */
  | { readonly socketPath: string };

/** How often Node looks for connections that are too slow with their headers. */
const CHECK_EVERY_MS = 1000;
/** TCP keep-alive: finds peers that are gone although nothing is to be sent to them. */
const KEEP_ALIVE_DELAY_MS = 30_000;
const STAGE_PREFIX = '.s-';
/** What a staged socket's path may have more than its final one: `.s-XXXXXX/s` for an empty name. */
const STAGED_BYTES = STAGE_PREFIX.length + 8;

/**
 * Node's HTTP server with the limits that it enforces itself, and with refusals in our form.
 * `closeUnused` closes the connections on which no request is under way.
 */
export function createRawServer(
  limits: HttpServerLimits,
  listener: RequestListener,
  tls?: TlsFiles,
): { readonly server: Server; closeUnused(): void } {
  const server = makeServer(
    {
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headersTimeoutMs,
      // Bodies have time limits of their own: some are streams of any length.
      requestTimeout: 0,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, limits.headersTimeoutMs),
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS,
      noDelay: true,
      // The guard asks for it, and answers in our form.
      requireHostHeader: false,
    },
    listener,
    tls,
  );
  server.maxConnections = limits.connectionsMax;
  // Node drops headers beyond its limit without a word; with one to spare the guard can see that
  // there were too many.
  server.maxHeadersCount = limits.headersMax + 1;
  server.timeout = limits.stallTimeoutMs;
  if (tls !== undefined) {
    // Who does not speak TLS is told nothing: there is nobody to tell it to.
    server.removeAllListeners('tlsClientError');
    server.on('tlsClientError', (_fault, socket) => socket.destroy());
  }
  server.on('clientError', (fault, socket) => {
    if (!socket.writable) return socket.destroy();
    socket.end(rawResponse(parserFailure(fault)), () => socket.destroy());
  });
  server.on('checkExpectation', ({ socket }: IncomingMessage) => {
    socket.end(rawResponse(expectationFailure()), () => socket.destroy());
  });
  server.on('connect', (_request, socket) => socket.destroy());
  // Node counts a connection as idle only after its first request.
  const fresh = new Set<Socket>();
  server.on(tls === undefined ? 'connection' : 'secureConnection', (socket) => {
    fresh.add(socket);
    socket.once('close', () => fresh.delete(socket));
  });
  for (const event of ['request', 'upgrade']) {
    server.on(event, (request: IncomingMessage) => fresh.delete(request.socket));
  }
  return {
    server,
    closeUnused() {
      server.closeIdleConnections();
      for (const socket of fresh) socket.destroy();
    },
  };
}

function makeServer(options: ServerOptions, listener: RequestListener, tls?: TlsFiles): Server {
  if (tls === undefined) return createServer(options, listener);
  const server = createTlsServer({ ...options, ...tlsOptionsOf(tls) }, listener);
  const stop = watchTlsFiles(tls, (context) => server.setSecureContext(context));
  server.once('close', stop);
  return server;
}

/**
 * Listens, replacing a socket that a dead server left. Rejects with `unavailable` when the address
 * is taken, `invalid-argument` when a socket's path is too long.
 */
export async function listen(server: Server, address: ListenAddress): Promise<ListenAddress> {
  if ('socketPath' in address) {
    await listenAtPath(server, address.socketPath);
    return address;
  }
  await startListening(server, address);
  return { host: address.host, port: (server.address() as AddressInfo).port };
}

function startListening(server: Server, where: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: Error) => reject(cannotListen(cause));
    server.once('error', onError);
    server.listen(where, () => {
      server.off('error', onError);
      resolve();
    });
  });
}

/**
 * A socket gets its mode from the umask, and may be connected to before it gets another one. So it is made
 * in a directory that only its owner can enter, and linked to its place with the right mode.
 */
async function listenAtPath(server: Server, path: string): Promise<void> {
  const tooLong = Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX - STAGED_BYTES;
  if (tooLong) throw new DsecError('invalid-argument', `the socket path ${path} is too long`);
  await removeDeadSocket(path);
  const stage = makeStage(dirname(path));
  try {
    const staged = join(stage, 's');
    await startListening(server, { path: staged });
    chmodSync(staged, 0o600);
    try {
      linkSync(staged, path);
    } catch (thrown) {
      server.close();
      throw cannotListen(thrown as Error);
    }
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
  const { ino } = lstatSync(path);
  // Node removes the name that it made; this one is ours, unless another server has taken it since.
  server.once('close', () => {
    if (lstatSync(path, { throwIfNoEntry: false })?.ino === ino) rmSync(path, { force: true });
  });
}

function makeStage(directory: string): string {
  try {
    return mkdtempSync(join(directory, STAGE_PREFIX));
  } catch (thrown) {
    throw cannotListen(thrown as Error);
  }
}

function cannotListen(cause: Error): DsecError {
  return new DsecError('unavailable', `cannot listen: ${cause.message}`, { cause });
}

function removeDeadSocket(path: string): Promise<void> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve();
    });
    probe.once('error', (error: NodeJS.ErrnoException) => {
      // Every file that is no socket refuses a connection too, and is not ours to remove.
      const isDead =
        error.code === 'ECONNREFUSED' && lstatSync(path, { throwIfNoEntry: false })?.isSocket();
      if (isDead) rmSync(path, { force: true });
      resolve();
    });
  });
}

/** Names under which a server on loopback, or on a unix socket, may be asked for. */
export function loopbackHosts(address: ListenAddress): readonly string[] {
  const names = ['localhost', '127.0.0.1', '[::1]'];
  return 'socketPath' in address ? names : [...names, address.host];
}
