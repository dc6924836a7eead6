import { closeSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';

/** A socket that somebody else made, bound and (for TCP) listening; or where to make one. */
export type ListenAt =
  | { readonly fd: number }
  | { readonly host: string; readonly port: number; readonly backlog?: number | undefined };

/** Resolves with the port once the server takes connections. */
export function listenOn(server: Server, at: ListenAt): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Closes what was given to listen on and is nobody's: a server that listens owns its descriptor. */
export function closeGiven(at: ListenAt): void {
  if ('fd' in at) closeSync(at.fd);
}

/** Takes no further connections; resolves when those that are open have ended. */
export function closeServer(server: Server): Promise<void> {
  if (!server.listening) return Promise.resolve();
  return new Promise((resolve) => server.close(() => resolve()));
}

/** An IPv4 address as it stands in rules, also where a socket of both families reports it. */
export function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
}
