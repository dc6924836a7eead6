import type { Socket } from 'node:net';
import type { Flow } from './flows.ts';
import { reset } from './flows.ts';

/**
 * Passes bytes both ways between a sandbox and the outside, no faster than either takes them, until both
 * have ended or one of them fails; a fault at one end is a reset at the other. Resolves when it is over.
 */
export function splice(
  client: Socket,
  upstream: Socket,
  flow: Flow,
  idleMs: number,
): Promise<void> {
  pass(client, upstream, (bytes) => flow.count('up', bytes));
  pass(upstream, client, (bytes) => flow.count('down', bytes));
  client.setTimeout(idleMs, () => reset(client));
  return new Promise((resolve) => {
    let open = 2;
    const ended = (other: Socket) => (hadError: boolean) => {
      open -= 1;
      if (open === 0) resolve();
      else if (hadError || !other.readableEnded) reset(other);
    };
    client.once('close', ended(upstream));
    upstream.once('close', ended(client));
  });
}

function pass(from: Socket, to: Socket, count: (bytes: number) => void): void {
  from.on('data', (chunk: Buffer) => {
    count(chunk.length);
    if (!to.write(chunk)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.once('end', () => to.end());
  from.resume();
}
