import { chmodSync, lstatSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { DsecError } from '@dsec/std';
import { parserFailure, rawResponse } from './http-errors.ts';
import type { HttpServerLimits } from './http-limits.ts';

export type ListenAddress =
  | { readonly host: string; readonly port: number }
  /** A unix socket, for its owner only. */
  | { readonly socketPath: string };

/** How often Node looks for connections that are too slow with their headers. */
const CHECK_EVERY_MS = 1000;
/** TCP keep-alive: finds peers that are gone although nothing is to be sent to them. */
const KEEP_ALIVE_DELAY_MS = 30_000;

/**
 * Node's HTTP server with the limits that it enforces itself, and with refusals in our form.
 * `closeUnused` closes the connections on which no request is under way.
 */
export function createRawServer(
  limits: HttpServerLimits,
  listener: RequestListener,
): { readonly server: Server; closeUnused(): void } {
  const server = createServer(
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
    },
    listener,
  );
  server.maxConnections = limits.connectionsMax;
  // Node drops headers beyond its limit without a word; with one to spare the guard can see that
  // there were too many.
  server.maxHeadersCount = limits.headersMax + 1;
  server.timeout = limits.stallTimeoutMs;
  server.on('clientError', (fault, socket) => {
    if (!socket.writable) return socket.destroy();
    socket.end(rawResponse(parserFailure(fault)), () => socket.destroy());
  });
  server.on('connect', (_request, socket) => socket.destroy());
  // Node counts a connection as idle only after its first request.
  const fresh = new Set<Socket>();
  server.on('connection', (socket) => {
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

/**
 * Listens, replacing a socket that a dead server left. Rejects with `unavailable` when the address
 * is taken.
 */
export async function listen(server: Server, address: ListenAddress): Promise<ListenAddress> {
  if ('socketPath' in address) await removeDeadSocket(address.socketPath);
  await new Promise<void>((resolve, reject) => {
    const onError = (cause: Error) =>
      reject(new DsecError('unavailable', `cannot listen: ${cause.message}`, { cause }));
    server.once('error', onError);
    server.listen('socketPath' in address ? { path: address.socketPath } : address, () => {
      server.off('error', onError);
      resolve();
    });
  });
  if ('socketPath' in address) {
    chmodSync(address.socketPath, 0o600);
    return address;
  }
  return { host: address.host, port: (server.address() as AddressInfo).port };
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
