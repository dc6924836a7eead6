import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { DsecError, MIB } from '@dsec/std';
import { afterEach, describe, expect, it } from 'vitest';
import { createHttpClient, createHttpServer, sha256Of } from '../src/index.ts';
import { settled, until } from './support/socket-pair.ts';
import {
  ask,
  exchange,
  newSocketPath,
  rawConnection,
  startServer,
  stopAll,
  stopLater,
  TABLE,
  type TestHandlers,
} from './support/test-server.ts';

afterEach(stopAll);

const show: TestHandlers['show'] = async ({ params }) => ({ text: params.id });
const JSON_TYPE = { 'content-type': 'application/json' };

describe('HTTP server', () => {
  it('serves typed routes, and tells who asked for what', async () => {
    const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
    const { baseUrl } = await startServer({
      echo: async ({ params, query, body }, call) => ({
        text: `${params.id} ${body.text.repeat(query.times ?? 1)} ${call.principal} ${call.idempotencyKey}`,
      }),
    });
    const reply = await ask(baseUrl, '/v1/things/abc/echo?times=2', {
      method: 'POST',
      headers: { ...JSON_TYPE, 'idempotency-key': 'key-1', 'x-request-id': 'req-1', traceparent },
      body: '{"text":"ab"}',
    });
    expect(reply).toMatchObject({ status: 201, body: { text: 'abc abab tester key-1' } });
    expect(reply.headers).toMatchObject({
      ...{ 'x-request-id': 'req-1', traceparent },
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
  });

  it('gives authorization the request as it was sent, with the digest of its JSON', async () => {
    const seen: unknown[] = [];
    const authorize = async (facts: { target: string; bodyDigest?: string; operation: string }) => {
      seen.push([facts.operation, facts.target, facts.bodyDigest]);
      throw new DsecError('unauthenticated', 'no ticket');
    };
    const { baseUrl } = await startServer(
      { echo: async () => ({ text: '' }), show },
      {
        authorize: authorize as never,
      },
    );
    const body = '{ "text": "x" }';
    const reply = await ask(baseUrl, '/v1/things/abc/echo?times=3', {
      method: 'POST',
      headers: JSON_TYPE,
      body,
    });
    expect(reply).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
    expect((await ask(baseUrl, '/v1/things/abc')).status).toBe(401);
    expect(seen).toEqual([
      ['echo', '/v1/things/abc/echo?times=3', sha256Of(body)],
      ['show', '/v1/things/abc', undefined],
    ]);
  });

  it.each<[string, string, Parameters<typeof ask>[2], number, string]>([
    ['a parameter outside the grammar', '/v1/things/ABC', {}, 400, 'invalid-argument'],
    ['an encoded slash in a parameter', '/v1/things/..%2f', {}, 400, 'invalid-argument'],
    ['a broken escape', '/v1/things/%zz', {}, 400, 'invalid-argument'],
    ['a parameter of 10 kB', `/v1/things/${'a'.repeat(10_000)}`, {}, 400, 'invalid-argument'],
    ['an unknown path', '/v1/nothing', {}, 404, 'not-found'],
    ['a route without a handler', '/v1/things/abc/lines', {}, 404, 'not-found'],
    ['another method', '/v1/things/abc', { method: 'PUT' }, 404, 'not-found'],
    ['a long target', `/v1/things/abc?x=${'a'.repeat(20_000)}`, {}, 413, 'too-large'],
    ['an unknown query', '/v1/things/abc?x=1', {}, 400, 'invalid-argument'],
    [
      'a query that is no number',
      '/v1/things/abc/echo?times=x',
      POST('{"text":""}'),
      400,
      'invalid-argument',
    ],
    ['a body that is not JSON', '/v1/things/abc/echo', POST('{"text"'), 400, 'invalid-argument'],
    ['an empty body', '/v1/things/abc/echo', POST(''), 400, 'invalid-argument'],
    [
      'a body outside the schema',
      '/v1/things/abc/echo',
      POST('{"text":1}'),
      400,
      'invalid-argument',
    ],
    ['an unknown field', '/v1/things/abc/echo', POST('{"text":"","x":1}'), 400, 'invalid-argument'],
    [
      'a poisoned prototype',
      '/v1/things/abc/echo',
      POST('{"text":"","__proto__":{}}'),
      400,
      'invalid-argument',
    ],
    [
      'bytes that are not UTF-8',
      '/v1/things/abc/echo',
      POST(Buffer.from('7b2274657874223a22ff227d', 'hex')),
      400,
      'invalid-argument',
    ],
    [
      'another content type',
      '/v1/things/abc/echo',
      { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{"text":""}' },
      400,
      'invalid-argument',
    ],
    [
      'a body of 2 MB',
      '/v1/things/abc/echo',
      POST(`{"text":"${'a'.repeat(2 * MIB)}"}`),
      413,
      'too-large',
    ],
    ['a body where none belongs', '/v1/things/abc/poke', POST('{}'), 400, 'invalid-argument'],
    [
      'a bad idempotency key',
      '/v1/things/abc/echo',
      { ...POST('{"text":""}'), headers: { ...JSON_TYPE, 'idempotency-key': 'a b' } },
      400,
      'invalid-argument',
    ],
    ['a plain request to a WebSocket', '/v1/things/abc/socket', {}, 400, 'invalid-argument'],
  ])('refuses %s', async (_name, path, options, status, code) => {
    const { baseUrl } = await startServer({
      show,
      echo: async ({ body }) => body,
      poke: async () => 'done',
      socket: async () => {},
    });
    const reply = await ask(baseUrl, path, options);
    expect(reply).toMatchObject({ status, body: { code } });
    expect(reply.headers['content-type']).toMatch(/^application\/json/);
  });

  it('answers with the code of an error, and hides what a fault says', async () => {
    const faults: [string, string][] = [];
    const { baseUrl } = await startServer(
      {
        show: async ({ params }) => {
          if (params.id === 'fault') throw new Error('secret detail');
          if (params.id === 'wrong') return { text: 1 } as never;
          throw new DsecError('quota-exceeded', 'too many', { details: { limit: 3 } });
        },
      },
      { onFault: (error, requestId) => faults.push([error.message, requestId]) },
    );
    expect(await ask(baseUrl, '/v1/things/abc')).toMatchObject({
      status: 429,
      body: { code: 'quota-exceeded', message: 'too many', details: { limit: 3 }, retryable: true },
    });
    for (const id of ['fault', 'wrong']) {
      const headers = { 'x-request-id': `r-${id}` };
      const reply = await ask(baseUrl, `/v1/things/${id}`, { headers });
      expect(reply).toMatchObject({
        status: 500,
        body: { code: 'internal', message: 'a fault in DSec', details: { requestId: `r-${id}` } },
      });
    }
    expect(faults).toEqual([
      ['secret detail', 'r-fault'],
      ['an answer does not fit its route', 'r-wrong'],
    ]);
  });

  it('takes an upload as fast as its handler does, and a download as fast as its caller', async () => {
    let read = 0;
    let release: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let produced = 0;
    const { port, baseUrl } = await startServer({
      upload: async ({ body }) => {
        await gate;
        for await (const chunk of body) read += chunk.length;
        return { text: String(read) };
      },
      download: async () => ({
        headers: { 'dsec-offset': '7' },
        body: (async function* () {
          for (; produced < 1000; produced += 1) yield Buffer.alloc(64 * 1024);
        })(),
      }),
    });
    const total = 64 * MIB;
    let offered = 0;
    const client = createHttpClient({ baseUrl });
    stopLater(() => client.close());
    const upload = client.read({
      method: 'PUT',
      target: '/v1/things/abc/bytes',
      isIdempotent: true,
      body: (async function* () {
        for (; offered < total; offered += 64 * 1024) yield Buffer.alloc(64 * 1024);
      })(),
    });
    expect(await settled(() => offered)).toBeLessThan(16 * MIB);
    release();
    expect(JSON.parse((await upload).body.toString())).toEqual({ text: String(total) });
    const slow = await rawConnection(port);
    slow.pause();
    slow.write('GET /v1/things/abc/bytes HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(await settled(() => produced)).toBeLessThan(500);
    slow.destroy();
  });

  it('never passes a broken stream off as a whole one', async () => {
    const { baseUrl, port } = await startServer({
      download: async ({ params }) => ({
        body: (async function* () {
          if (params.id === 'late') yield Buffer.from('part');
          throw new DsecError('agent-lost', 'gone');
        })(),
      }),
    });
    expect(await ask(baseUrl, '/v1/things/early/bytes')).toMatchObject({
      status: 502,
      body: { code: 'agent-lost' },
    });
    const get = 'GET /v1/things/late/bytes HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const reply = await exchange(port, get);
    expect(reply).toContain('part');
    expect(reply.endsWith('0\r\n\r\n')).toBe(false);
  });

  it('answers an upload that its handler breaks off', async () => {
    let cut: string | undefined;
    let begun = 0;
    const { baseUrl, port } = await startServer({
      upload: async ({ params, body }) => {
        begun += 1;
        try {
          for await (const _ of body) {
            if (params.id === 'enough') throw new DsecError('quota-exceeded', 'enough');
          }
        } catch (thrown) {
          cut = (thrown as DsecError).code;
          throw thrown;
        }
        return { text: '' };
      },
    });
    const client = createHttpClient({ baseUrl });
    stopLater(() => client.close());
    const target = '/v1/things/enough/bytes';
    const body = Buffer.alloc(8 * MIB);
    await expect(
      client.read({ method: 'PUT', target, isIdempotent: false, body }),
    ).rejects.toMatchObject({ code: 'quota-exceeded' });
    const socket = await rawConnection(port);
    socket.write(
      'PUT /v1/things/abc/bytes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n12',
    );
    cut = undefined;
    await until(() => begun === 2);
    socket.destroy();
    await until(() => cut !== undefined);
    expect(cut).toBe('cancelled');
  });

  it('tells a handler that its caller is gone', async () => {
    let signal: AbortSignal | undefined;
    const { port } = await startServer({
      show: (_input, call) => {
        signal = call.signal;
        return new Promise((_resolve, reject) => {
          call.signal.addEventListener('abort', () => reject(call.signal.reason));
        });
      },
    });
    const socket = await rawConnection(port);
    socket.write('GET /v1/things/abc HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(() => signal !== undefined);
    socket.destroy();
    await until(() => signal?.aborted === true);
    expect(signal?.reason).toMatchObject({ code: 'cancelled' });
  });

  it('bounds its connections', async () => {
    const { port } = await startServer({ show }, { limits: { connectionsMax: 2 } });
    const kept = [await rawConnection(port), await rawConnection(port)];
    const refused = await rawConnection(port);
    refused.on('error', () => {});
    await new Promise((resolve) => refused.once('close', resolve));
    for (const socket of kept) expect(socket.destroyed).toBe(false);
  });

  it('listens on a unix socket for its owner, and not where another server listens', async () => {
    const socketPath = newSocketPath();
    const options = {
      listen: { socketPath },
      routes: TABLE,
      handlers: { show },
      authorize: async () => '',
    };
    const first = await createHttpServer(options);
    expect(statSync(socketPath).mode & 0o777).toBe(0o600);
    await expect(createHttpServer(options)).rejects.toMatchObject({ code: 'unavailable' });
    const client = createHttpClient({ baseUrl: 'http://localhost', socketPath });
    stopLater(() => client.close());
    const get = { method: 'GET', target: '/v1/things/abc', isIdempotent: true } as const;
    expect((await client.read(get)).status).toBe(200);
    await first.close(0);
  });

  it('does not take a file that is no socket for one that a dead server left', async () => {
    const socketPath = newSocketPath();
    writeFileSync(socketPath, 'kept');
    const options = { listen: { socketPath }, routes: TABLE, handlers: { show } };
    await expect(createHttpServer({ ...options, authorize: async () => '' })).rejects.toMatchObject(
      {
        code: 'unavailable',
      },
    );
    expect(readFileSync(socketPath, 'utf8')).toBe('kept');
    rmSync(socketPath);
  });
});

describe('closing HTTP server', () => {
  it('finishes what is under way, takes nothing new, and ends', async () => {
    let release: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let started = false;
    const server = await startServer({
      show: async () => {
        started = true;
        await gate;
        return { text: 'finished' };
      },
    });
    const slow = ask(server.baseUrl, '/v1/things/abc');
    const idle = await rawConnection(server.port);
    await until(() => started);
    const closed = server.close(20_000);
    await new Promise((resolve) => idle.once('close', resolve));
    await expect(ask(server.baseUrl, '/v1/things/abc')).rejects.toThrow(/ECONNREFUSED/);
    release();
    expect(await slow).toMatchObject({
      body: { text: 'finished' },
      headers: { connection: 'close' },
    });
    await closed;
  });

  it('ends event streams at once and cuts what does not finish in time', async () => {
    const reasons: string[] = [];
    let started = 0;
    const server = await startServer({
      events: async (_input, { signal }) =>
        (async function* () {
          yield { id: '1', data: { text: 'one' } };
          started += 1;
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
          reasons.push(`events ${(signal.reason as DsecError).code}`);
        })(),
      show: async (_input, { signal }) =>
        new Promise((_resolve, reject) => {
          started += 1;
          signal.addEventListener('abort', () => {
            reasons.push(`show ${(signal.reason as DsecError).code}`);
            reject(signal.reason);
          });
        }),
    });
    const events = ask(server.baseUrl, '/v1/things/abc/events');
    const stuck = ask(server.baseUrl, '/v1/things/abc').catch((error: Error) => error.name);
    await until(() => started === 2);
    await server.close(200);
    expect((await events).body).toBe(': connected\n\nid: 1\ndata: {"text":"one"}\n\n');
    expect(reasons).toEqual(['events unavailable', 'show unavailable']);
    await stuck;
  });
});

function POST(body: string | Buffer) {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body };
}
