import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { MIB } from '@dsec/std';
import { afterEach, describe, expect, it } from 'vitest';
import { createHttpClient, type HttpClientOptions, type HttpRequest } from '../src/index.ts';
import { settled } from './support/socket-pair.ts';
import { stopAll, stopLater } from './support/test-server.ts';

afterEach(stopAll);

const GET: HttpRequest = { method: 'GET', target: '/x', isIdempotent: true };
const POST: HttpRequest = { method: 'POST', target: '/x', isIdempotent: false };
const FAST = { attemptsMax: 4, firstDelayMs: 1, delayMsMax: 2 };
const UNAVAILABLE = JSON.stringify({ code: 'unavailable', message: 'later' });

async function against(listener: RequestListener, options: Partial<HttpClientOptions> = {}) {
  const requests: { method: string; headers: Record<string, unknown>; body: string }[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    requests.push({ method: request.method ?? '', headers: request.headers, body });
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const client = createHttpClient({
    baseUrl: `http://127.0.0.1:${port}`,
    retries: FAST,
    ...options,
  });
  stopLater(async () => {
    await client.close();
    server.closeAllConnections();
    server.close();
  });
  return { client, requests };
}

/** Answers each request with the next answer, and the last one for ever. */
function answering(
  ...answers: readonly [status: number, body: string, headers?: Record<string, string>][]
) {
  let count = 0;
  const listener: RequestListener = (_request, response) => {
    const [status, body, headers] = answers[Math.min(count, answers.length - 1)] ?? [500, ''];
    count += 1;
    response.writeHead(status, headers).end(body);
  };
  return listener;
}

describe('HTTP client', () => {
  it('sends what it is given and reads the answer', async () => {
    const { client, requests } = await against(answering([200, 'hello', { 'x-a': '1' }]), {
      headers: { authorization: 'Bearer k' },
    });
    const traceparent = '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01';
    const reply = await client.read({
      ...POST,
      headers: { 'content-type': 'text/x' },
      body: Buffer.from('body'),
      idempotencyKey: 'key-1',
      traceparent,
    });
    expect(reply.body.toString()).toBe('hello');
    expect(reply.headers).toMatchObject({ 'x-a': '1' });
    expect(requests).toMatchObject([
      {
        method: 'POST',
        body: 'body',
        headers: {
          authorization: 'Bearer k',
          'content-type': 'text/x',
          'idempotency-key': 'key-1',
          traceparent,
        },
      },
    ]);
  });

  it.each<[string, number, string, string]>([
    [
      'an error body',
      409,
      '{"code":"state-conflict","message":"m","details":{"a":1}}',
      'state-conflict',
    ],
    ['an error body of the future', 418, '{"code":"brand-new","message":"m"}', 'internal'],
    ['no error body', 404, '<html>', 'not-found'],
    ['a redirect', 302, '', 'protocol'],
    ['a strange status', 299 + 1, '', 'protocol'],
    ['a huge error body', 400, 'x'.repeat(100_000), 'too-large'],
  ])('turns %s into the right error', async (_name, status, body, code) => {
    const headers = { location: '/elsewhere' };
    const { client, requests } = await against(answering([status, body, headers]));
    await expect(client.read(GET)).rejects.toMatchObject({ code });
    expect(requests).toHaveLength(1);
  });

  it('repeats what may be repeated, and nothing else', async () => {
    const twice = () => answering([503, UNAVAILABLE], [429, '{}'], [200, 'ok']);
    const count = async (request: HttpRequest) => {
      const { client, requests } = await against(twice());
      const outcome = await client.read(request).then(
        (reply) => reply.body.toString(),
        (error: { code: string }) => error.code,
      );
      return [outcome, requests.length];
    };
    expect(await count(GET)).toEqual(['ok', 3]);
    expect(await count({ ...POST, idempotencyKey: 'k', body: Buffer.from('b') })).toEqual([
      'ok',
      3,
    ]);
    expect(await count(POST)).toEqual(['unavailable', 1]);
    const stream = (async function* () {
      yield Buffer.from('b');
    })();
    expect(await count({ ...GET, method: 'PUT', body: stream })).toEqual(['unavailable', 1]);
  });

  it('does not repeat errors that a repetition cannot mend, and gives up in the end', async () => {
    for (const [code, attempts] of [
      ['not-found', 1],
      ['conflict', 1],
      ['internal', 1],
      ['overloaded', 4],
    ] as const) {
      const { client, requests } = await against(
        answering([500, `{"code":"${code}","message":""}`]),
      );
      await expect(client.read(GET)).rejects.toMatchObject({ code });
      expect(requests.length, code).toBe(attempts);
    }
  });

  it('waits as long as the server asks, but not beyond the deadline', async () => {
    const asks = answering([503, UNAVAILABLE, { 'retry-after': '3600' }]);
    const { client, requests } = await against(asks);
    await expect(client.read(GET)).rejects.toMatchObject({
      code: 'unavailable',
      details: { retryAfterMs: 3_600_000 },
    });
    expect(requests).toHaveLength(1);
  });

  it('repeats after a connection that broke', async () => {
    let count = 0;
    const { client, requests } = await against((_request, response) => {
      count += 1;
      if (count < 3) response.destroy();
      else response.end('ok');
    });
    expect((await client.read(GET)).body.toString()).toBe('ok');
    expect(requests).toHaveLength(3);
    count = 0;
    await expect(client.read(POST)).rejects.toMatchObject({ code: 'unavailable' });
    expect(requests).toHaveLength(4);
  });

  it('holds its deadline in every phase', async () => {
    const silent = await against(() => {});
    await expect(silent.client.read({ ...GET, deadlineMs: 50 })).rejects.toMatchObject({
      code: 'deadline-exceeded',
    });
    const halfway = await against((_request, response) => {
      response.write('half');
    });
    await expect(halfway.client.read({ ...GET, deadlineMs: 100 })).rejects.toMatchObject({
      code: 'deadline-exceeded',
    });
    const abort = new AbortController();
    const given = silent.client.read({ ...GET, signal: abort.signal });
    abort.abort();
    await expect(given).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('reads no more of an answer than it may', async () => {
    const { client } = await against(
      (_request, response) => {
        const write = () => {
          while (!response.destroyed && response.write(Buffer.alloc(64 * 1024)));
        };
        response.on('drain', write);
        write();
      },
      { replyBytesMax: MIB },
    );
    await expect(client.read(GET)).rejects.toMatchObject({ code: 'too-large' });
  });

  it('streams an answer at the pace of its reader, and tells when it breaks off', async () => {
    let sent = 0;
    let finish: 'end' | 'destroy' = 'end';
    const { client } = await against((_request, response) => {
      sent = 0;
      const write = () => {
        while (sent < 400) {
          sent += 1;
          if (!response.write(Buffer.alloc(64 * 1024))) return;
        }
        response.off('drain', write);
        response[finish]();
      };
      response.on('drain', write);
      write();
    });
    const { body } = await client.open({ ...GET, deadlineMs: 1500 });
    expect(await settled(() => sent)).toBeLessThan(200);
    await new Promise((resolve) => setTimeout(resolve, 1600));
    let received = 0;
    for await (const chunk of body) received += chunk.byteLength;
    expect(received).toBe(400 * 64 * 1024);
    finish = 'destroy';
    const broken = await client.open(GET);
    const read = async () => {
      for await (const _ of broken.body);
    };
    await expect(read()).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('ends an answer whose reader has left, and keeps working', async () => {
    let closed = 0;
    const { client } = await against((_request, response) => {
      response.on('close', () => {
        closed += 1;
      });
      const timer = setInterval(() => response.write('x'), 1);
      response.on('close', () => clearInterval(timer));
    });
    for (let i = 0; i < 5; i += 1) {
      const { body } = await client.open(GET);
      for await (const _ of body) break;
    }
    expect(await settled(() => closed)).toBe(5);
  });

  it('calls an absent server unavailable, and one that speaks something else a breach', async () => {
    const sockets: Socket[] = [];
    const noise = createTcpServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      socket.end('SSH-2.0-nothing to see here\r\n\r\n');
    });
    await new Promise<void>((resolve) => noise.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(noise.address() as AddressInfo).port}`;
    const client = createHttpClient({ baseUrl, retries: FAST });
    await expect(client.read(GET)).rejects.toMatchObject({ code: 'protocol' });
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => noise.close(resolve));
    await expect(client.read(GET)).rejects.toMatchObject({ code: 'unavailable' });
    await client.close();
    await expect(client.read(GET)).rejects.toMatchObject({ code: 'unavailable' });
  });
});
