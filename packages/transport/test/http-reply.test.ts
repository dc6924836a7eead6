import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DsecError, MIB } from '@dsec/std';
import { type Dispatcher, Pool } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { dispatchOnce } from '../src/http-reply.ts';
import { settled, until } from './support/socket-pair.ts';

const CHUNK = Buffer.alloc(64 * 1024, 7);

async function replyOf(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const pool = new Pool(`http://127.0.0.1:${port}`);
  onTestFinished(async () => {
    await pool.destroy();
    server.closeAllConnections();
    server.close();
  });
  return dispatchOnce(
    pool,
    { method: 'GET', path: '/' },
    {
      signal: new AbortController().signal,
      translate: (cause) => new DsecError('unavailable', 'it broke off', { cause }),
    },
  );
}

test('a short body is there before anybody asks for it, and is not lost', async () => {
  const reply = await replyOf((_request, response) => response.end('short'));
  await settled(() => reply.status);
  expect((await reply.read(5)).toString()).toBe('short');
});

test('of a long one a little is taken ahead, until somebody wants it', async () => {
  let sent = 0;
  const reply = await replyOf((_request, response) => {
    const write = () => {
      while (sent < 64 * MIB) {
        sent += CHUNK.length;
        if (!response.write(CHUNK)) return;
      }
      response.off('drain', write);
      response.end();
    };
    response.on('drain', write);
    write();
  });
  expect(await settled(() => sent)).toBeLessThan(32 * MIB);
  let received = 0;
  for await (const piece of reply.pieces()) received += piece.length;
  expect(received).toBe(64 * MIB);
});

test('what came before it broke off is given first', async () => {
  const reply = await replyOf((_request, response) => {
    response.writeHead(200, { 'content-length': 2 * CHUNK.length });
    response.write(CHUNK, () => response.destroy());
  });
  let received = 0;
  const read = async () => {
    for await (const piece of reply.pieces()) received += piece.length;
  };
  await expect(read()).rejects.toMatchObject({ code: 'unavailable' });
  expect(received).toBe(CHUNK.length);
});

test('leaving its pieces ends the answer', async () => {
  let isClosed = false;
  const reply = await replyOf((_request, response) => {
    response.once('close', () => {
      isClosed = true;
    });
    response.write('a beginning');
  });
  for await (const _ of reply.pieces()) break;
  await until(() => isClosed);
});

test.each(['pieces', 'open'] as const)(
  'a slow reader of %s seldom has the server wait',
  async (how) => {
    const piece = Buffer.alloc(4 * 1024);
    let left = 4 * MIB;
    let pauses = 0;
    let isPaused = false;
    const dispatch = ((_request, handler) => {
      const feed = () => {
        while (left > 0 && !isPaused) {
          left -= piece.length;
          // As the HTTP client does: false of this function is a pause.
          const more = handler.onResponseData?.(controller as never, piece) as unknown;
          if (more === false) controller.pause();
        }
        if (left === 0) handler.onResponseEnd?.(controller as never, {});
      };
      const controller = {
        pause() {
          isPaused = true;
          pauses += 1;
        },
        resume() {
          if (!isPaused) return;
          isPaused = false;
          setImmediate(feed);
        },
        abort() {},
      };
      handler.onRequestStart?.(controller as never, {});
      handler.onResponseStart?.(controller as never, 200, {});
      setImmediate(feed);
      return true;
    }) as Dispatcher['dispatch'];
    const reply = await dispatchOnce(
      { dispatch } as Dispatcher,
      { method: 'GET', path: '/' },
      { signal: new AbortController().signal, translate: (thrown) => thrown as DsecError },
    );
    let received = 0;
    for await (const chunk of how === 'pieces' ? reply.pieces() : reply.open()) {
      received += chunk.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(received).toBe(4 * MIB);
    expect(pauses).toBeLessThan(40);
  },
);
