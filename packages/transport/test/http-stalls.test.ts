import { DsecError } from '@dsec/std';
import { afterEach, describe, expect, it } from 'vitest';
import type { HttpServerLimits } from '../src/index.ts';
import { until } from './support/socket-pair.ts';
import {
  ask,
  exchange,
  rawConnection,
  startServer,
  stopAll,
  type TestHandlers,
} from './support/test-server.ts';

afterEach(stopAll);

describe('stalled peer', () => {
  it('cuts off a peer that is slow with its headers or with a JSON body', async () => {
    const echo: TestHandlers['echo'] = async ({ body }) => body;
    const drip = async (limits: Partial<HttpServerLimits>, head: string, part: string) => {
      const { port } = await startServer({ echo }, { limits });
      const socket = await rawConnection(port);
      let received = '';
      socket.on('data', (chunk) => {
        received += chunk;
      });
      socket.on('error', () => {});
      socket.write(head);
      const timer = setInterval(() => socket.write(part), 20);
      await new Promise((resolve) => socket.once('close', resolve));
      clearInterval(timer);
      return received;
    };
    const get = 'GET /v1/things/abc HTTP/1.1\r\nHost: localhost\r\n';
    const answer = await drip({ headersTimeoutMs: 300 }, get, 'X-A: b\r\n');
    expect(answer).toMatch(/^HTTP\/1.1 504 .*deadline-exceeded/s);
    const post =
      'POST /v1/things/abc/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n';
    const head = `${post}Content-Type: application/json\r\n\r\n`;
    const late = await drip({ bodyTimeoutMs: 300, lingerMs: 200 }, head, ' ');
    expect(late).toMatch(/^HTTP\/1.1 504 .*deadline-exceeded.*in time/s);
  });

  it('cuts off a peer that stops sending, or stops reading, and spares one that waits for us', async () => {
    let aborted: DsecError | undefined;
    let sent = 0;
    const { port, baseUrl } = await startServer(
      {
        upload: async ({ body }) => {
          for await (const _ of body);
          return { text: '' };
        },
        download: async (_input, call) => {
          call.signal.addEventListener('abort', () => {
            aborted = call.signal.reason;
          });
          const chunk = Buffer.alloc(64 * 1024);
          const body = (async function* () {
            for (; sent < 2000; sent += 1) yield chunk;
          })();
          return { body };
        },
        show: async () => {
          await new Promise((resolve) => setTimeout(resolve, 1500));
          return { text: 'slow' };
        },
      },
      { limits: { stallTimeoutMs: 1000 } },
    );
    const upload =
      'PUT /v1/things/abc/bytes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n1234';
    expect(await exchange(port, upload)).toBe('');
    const reader = await rawConnection(port);
    reader.on('error', () => {});
    reader.pause();
    reader.write('GET /v1/things/abc/bytes HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(() => aborted !== undefined);
    expect(aborted?.code).toBe('cancelled');
    expect(sent).toBeLessThan(1000);
    expect(await ask(baseUrl, '/v1/things/abc')).toMatchObject({ status: 200 });
  });

  it('lets a caller read the refusal of an upload that it is still sending', async () => {
    const { port } = await startServer(
      { upload: async () => ({ text: '' }) },
      {
        authorize: async () => {
          throw new DsecError('permission-denied', 'not yours');
        },
        limits: { lingerMs: 100 },
      },
    );
    const socket = await rawConnection(port);
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.on('error', () => {});
    socket.write(
      'PUT /v1/things/abc/bytes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\n',
    );
    const timer = setInterval(() => socket.write(Buffer.alloc(100_000)), 5);
    await new Promise((resolve) => socket.once('close', resolve));
    clearInterval(timer);
    expect(received).toMatch(/^HTTP\/1.1 403 .*permission-denied/s);
  });
});
