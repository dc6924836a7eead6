/** A server of the real routes whose handlers are the test's, on loopback. */
import { type Exec, ROUTES, type Sandbox as SandboxInfo } from '@dsec/protocol';
import { createHttpServer, type RouteHandlers } from '@dsec/transport';
import { afterEach } from 'vitest';
import { Client } from '../../src/index.ts';
import { createServer, type Server } from '../../src/server.ts';

export type FakeHandlers = RouteHandlers<typeof ROUTES, undefined>;

const toStop: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of toStop.splice(0).reverse()) await stop();
});

export function stopLater(stop: () => Promise<void>): void {
  toStop.push(stop);
}

export async function startFake(handlers: FakeHandlers): Promise<string> {
  const server = await createHttpServer({
    ...{ listen: { host: '127.0.0.1', port: 0 }, routes: ROUTES, handlers },
    authorize: async () => undefined,
  });
  stopLater(() => server.close(100));
  return `http://127.0.0.1:${'port' in server.address ? server.address.port : 0}`;
}

export const API_KEY = 'dsec_test';

export async function clientOf(handlers: FakeHandlers): Promise<Client> {
  const client = new Client({ url: await startFake(handlers), apiKey: API_KEY });
  stopLater(() => client.close());
  return client;
}

/** The seam below the client. */
export async function serverOf(handlers: FakeHandlers, timeoutMs = 10_000): Promise<Server> {
  const server = createServer({ url: await startFake(handlers), apiKey: API_KEY, timeoutMs });
  stopLater(() => server.close());
  return server;
}

export const SANDBOX_ID = 'sb-s1-e1-aaaaaaaaaaaaaaaa';
export const EXEC_ID = 'ex-aaaaaaaaaaaaaaaa';
export const PLACE = { sandboxId: SANDBOX_ID, execId: EXEC_ID };

export function sandboxInfo(changes: Partial<SandboxInfo> = {}): SandboxInfo {
  return {
    ...{ id: SANDBOX_ID, state: 'running', revision: 1, edge: 'e1', project: 'p', principal: 'p' },
    ...{ spec: { environment: 'x' }, layers: [], createdAtMs: 1, timings: {}, protections: [] },
    ...changes,
  };
}

const output = (totalBytes: number) => ({
  ...{ totalBytes, headBytes: totalBytes, tailOffset: totalBytes },
  ...{ truncated: false, ended: true },
});

/** A command that has ended well with so much output. */
export function execInfo(
  { stdoutBytes = 0, stderrBytes = 0 } = {},
  changes: Partial<Exec> = {},
): Exec {
  return {
    ...{ id: EXEC_ID, sandbox: SANDBOX_ID, sequence: 1, command: 'x', state: 'exited' },
    exit: { exitCode: 0, coreDumped: false, timedOut: false, oomKilled: false, trusted: true },
    ...{ startedAtMs: 1000, endedAtMs: 1010 },
    ...{ stdout: output(stdoutBytes), stderr: output(stderrBytes) },
    ...changes,
  };
}

export async function* piecesOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

/** Pieces up to an offset, then a connection that is lost. */
export async function* brokenAt(bytes: Uint8Array, end: number): AsyncGenerator<Uint8Array> {
  yield* piecesOf(bytes.subarray(0, end), 64 * 1024);
  // What is on its way arrives first.
  await new Promise((resolve) => setTimeout(resolve, 50));
  throw new Error('the server is gone');
}

export async function joined(items: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of items) pieces.push(piece);
  return Buffer.concat(pieces);
}

export async function listed<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
