import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Two ends of a unix stream socket. */
export async function socketPair(): Promise<readonly [Socket, Socket]> {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-pair-'));
  const path = join(directory, 'pair');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
  const client = connect(path);
  const pair = [client, await accepted] as const;
  server.close();
  rmSync(directory, { recursive: true });
  return pair;
}

/** Waits, turn by turn, until something holds. The test's own time limit is the only one. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
}

/** Waits until a number has stopped changing for a while: what was to happen has happened. */
export async function settled(value: () => number): Promise<number> {
  for (let same = 0, last = value(); ; last = value()) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    same = value() === last ? same + 1 : 0;
    if (same === 5) return last;
  }
}
