import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { ROUTES } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import type { WebSocketChannel } from '@dsec/transport';
import { afterEach, expect, test } from 'vitest';
import { until } from './aether-peer.ts';
import { SANDBOX, useEdge } from './edge-http-world.ts';

const world = useEdge();
const END = new Uint8Array(0);
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(onSocket: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, onSocket);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as { port: number }).port;
}

const open = (port: number) => world().socket(ROUTES.connectPort, { sandboxId: SANDBOX, port }, {});

/** Bytes until the end of their direction. */
async function readAll(channel: WebSocketChannel): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const message of channel.messages()) {
    if (message.length === 0) return Buffer.concat(parts);
    parts.push(message as Uint8Array);
  }
  throw new Error('closed before the end');
}

test('bytes go both ways, and each direction ends by itself', async () => {
  const port = await listen((socket) => {
    socket.on('data', (chunk) => socket.write(chunk));
    socket.on('end', () => socket.end('bye'));
  });
  const bytes = randomBytes(5 * MIB);
  const channel = await open(port);
  const received = readAll(channel);
  for (let at = 0; at < bytes.length; at += 100_000) {
    await channel.send(bytes.subarray(at, at + 100_000));
  }
  await channel.send(END);
  expect((await received).equals(Buffer.concat([bytes, Buffer.from('bye')]))).toBe(true);
  expect(await channel.closed).toBeUndefined();
});

test('a side that ends first still hears the other', async () => {
  let heard = '';
  const port = await listen((socket) => {
    socket.end('first');
    socket.on('data', (chunk) => {
      heard += chunk;
    });
  });
  const channel = await open(port);
  expect((await readAll(channel)).toString()).toBe('first');
  await channel.send(Buffer.from('second'));
  await channel.send(END);
  expect(await channel.closed).toBeUndefined();
  expect(heard).toBe('second');
});

test('a port that nobody listens on', async () => {
  const port = await listen(() => {});
  servers[0]?.close();
  const channel = await open(port);
  expect(await channel.closed).toMatchObject({ code: 'unavailable' });
});

test('what is no bytes ends the connection', async () => {
  let ended = 0;
  const port = await listen((socket) => {
    socket.on('error', () => {});
    socket.on('end', () => {
      ended += 1;
    });
    socket.resume();
  });
  const channel = await open(port);
  await channel.send('GET / HTTP/1.1');
  expect(await channel.closed).toMatchObject({ code: 'invalid-argument' });
  const late = await open(port);
  await late.send(END);
  await late.send(Buffer.from('more'));
  expect(await late.closed).toMatchObject({ code: 'invalid-argument' });
  const left = await open(port);
  await left.send(Buffer.from('x'));
  await left.close();
  await until(() => ended === 3, 'the end of the connections');
});

test('a side that does not read holds up its own connection only', {
  timeout: 60_000,
}, async () => {
  let sent = 0;
  const port = await listen((socket) => {
    socket.on('error', () => {});
    const block = Buffer.alloc(64 * 1024);
    const more = () => {
      while (sent < 512 * MIB && !socket.destroyed) {
        sent += block.length;
        if (!socket.write(block)) return void socket.once('drain', more);
      }
    };
    more();
  });
  const slow = await open(port);
  let last = -1;
  await until(
    async () => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      const same = last === sent;
      last = sent;
      return same && sent > 0;
    },
    'a full connection',
    30_000,
  );
  expect(sent).toBeLessThan(64 * MIB);
  const echo = await listen((socket) => socket.pipe(socket));
  const quick = await open(echo);
  await quick.send(Buffer.from('hello'));
  await quick.send(END);
  expect((await readAll(quick)).toString()).toBe('hello');
  await slow.close();
});
