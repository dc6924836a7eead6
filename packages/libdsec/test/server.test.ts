import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROUTES } from '@dsec/protocol';
import { DsecError as CodedError } from '@dsec/std';
import { createHttpServer } from '@dsec/transport';
import { describe, expect, it } from 'vitest';
import { NotFoundError, ProtocolError, UnauthenticatedError } from '../src/index.ts';
import { createServer } from '../src/server.ts';
import { API_KEY, sandboxInfo, serverOf, stopLater } from './support/fake-server.ts';

const VERSION = { version: '1', api: 'v1', frames: 1 } as const;

describe('the server of a client', () => {
  it('is shown the key, and told a request id that errors repeat', async () => {
    const seen: (string | undefined)[] = [];
    const server = await serverOf({
      async getVersion(_, { headers, requestId }) {
        seen.push(headers.authorization, requestId);
        throw new CodedError('unauthenticated', 'no');
      },
    });
    const error = await server.call(ROUTES.getVersion, {}).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(UnauthenticatedError);
    expect(seen).toEqual([`Bearer ${API_KEY}`, error.requestId]);
  });

  it('is asked again with the same key for what must not happen twice', async () => {
    const keys: (string | undefined)[] = [];
    const server = await serverOf({
      async createSandbox(_, { idempotencyKey }) {
        keys.push(idempotencyKey);
        if (keys.length < 3) throw new CodedError('unavailable', 'not now');
        return sandboxInfo();
      },
    });
    await server.call(ROUTES.createSandbox, { body: { environment: 'x' } });
    await server.call(ROUTES.createSandbox, { body: { environment: 'x' } });
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(new Set(keys.slice(0, 3)).size).toBe(1);
    expect(keys[3]).not.toBe(keys[0]);
    const own = { idempotencyKey: 'mine' };
    await server.call(ROUTES.createSandbox, { body: { environment: 'x' } }, own);
    expect(keys[4]).toBe('mine');
  });

  it('fails with the classes of this package in the middle of a stream too', async () => {
    const server = await serverOf({
      readFile: async () => {
        throw new CodedError('not-found', 'gone');
      },
      createSandboxes: async () =>
        (async function* () {
          yield { index: 0, sandbox: sandboxInfo() };
          throw new Error('gone');
        })(),
    });
    const params = { sandboxId: sandboxInfo().id };
    const read = server.call(ROUTES.readFile, { params, query: { path: '/x' } });
    await expect(read).rejects.toBeInstanceOf(NotFoundError);
    const body = { count: 2, spec: { environment: 'x' } };
    const lines = await server.call(ROUTES.createSandboxes, { body });
    const taken = async () => {
      for await (const line of lines) expect(line.index).toBe(0);
    };
    await expect(taken()).rejects.toMatchObject({ name: 'UnavailableError' });
  });

  it('may be behind a unix socket', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'dsec-lib-'));
    const socketPath = join(directory, 'api.sock');
    const http = await createHttpServer({
      ...{ listen: { socketPath }, routes: ROUTES, authorize: async () => undefined },
      handlers: { getVersion: async () => VERSION },
    });
    stopLater(async () => rmSync(directory, { recursive: true }));
    stopLater(() => http.close(100));
    const server = createServer({ url: `unix:${socketPath}`, apiKey: 'k', timeoutMs: 5000 });
    stopLater(() => server.close());
    expect(await server.call(ROUTES.getVersion, {})).toEqual(VERSION);
  });

  it('is waited for when it has answered before, and given up soon when it never has', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'dsec-lib-'));
    stopLater(async () => rmSync(directory, { recursive: true }));
    const socketPath = join(directory, 'api.sock');
    const server = createServer({ url: `unix:${socketPath}`, apiKey: 'k', timeoutMs: 60_000 });
    stopLater(() => server.close());
    const never = server.call(ROUTES.getVersion, {});
    await expect(never).rejects.toMatchObject({
      ...{ name: 'UnavailableError', details: { reached: false } },
    });
    const start = () =>
      createHttpServer({
        ...{ listen: { socketPath }, routes: ROUTES, authorize: async () => undefined },
        handlers: { getVersion: async () => VERSION },
      });
    const first = await start();
    await server.call(ROUTES.getVersion, {});
    await first.close(0);
    const call = server.call(ROUTES.getVersion, {});
    await new Promise((resolve) => setTimeout(resolve, 1500));
    const second = await start();
    stopLater(() => second.close(0));
    expect(await call).toEqual(VERSION);
  });

  it('that answers is patiently asked again', async () => {
    let asked = 0;
    const server = await serverOf({
      async getVersion() {
        asked += 1;
        if (asked < 7) throw new CodedError('unavailable', 'no edge yet');
        return VERSION;
      },
    });
    expect(await server.call(ROUTES.getVersion, {})).toEqual(VERSION);
  });

  it('is refused when its url is none, and after the client was closed', async () => {
    for (const url of ['ftp://x', 'http://x/path', 'unix:relative', 'nonsense']) {
      expect(() => createServer({ url, apiKey: 'k', timeoutMs: 1 })).toThrow(/url of a server/);
    }
    const server = await serverOf({ getVersion: async () => VERSION });
    await server.close();
    await expect(server.call(ROUTES.getVersion, {})).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('is not believed when its answer does not fit', async () => {
    const server = await serverOf({ getVersion: async () => VERSION });
    const route = { ...ROUTES.getVersion, reply: ROUTES.getHealth.reply };
    await expect(server.call(route, {})).rejects.toBeInstanceOf(ProtocolError);
  });
});
