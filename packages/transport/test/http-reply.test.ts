import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DsecError, MIB } from '@dsec/std';
import { Pool } from 'undici';
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
