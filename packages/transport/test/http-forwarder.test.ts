import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpForwarder } from '../src/index.ts';

const signal = new AbortController().signal;
const MIB = 2 ** 20;

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function forwarderTo(listener: RequestListener) {
  const port = await listening(createServer(listener));
  const forwarder = createHttpForwarder({ address: { host: '127.0.0.1', port } });
  onTestFinished(() => forwarder.close());
  return forwarder;
}
const get = { method: 'GET' as const, target: '/x', headers: {}, signal };

test('a request arrives as it is, and the answer comes back without what is the connection’s', async () => {
  const forwarder = await forwarderTo((request, response) => {
    response.writeHead(201, { 'x-seen': `${request.method} ${request.url}`, connection: 'close' });
    request.pipe(response);
  });
  const target = '/a%20b?c=%2F&d';
  const body = Buffer.from('body');
  const headers = { 'content-type': 'text/x', 'content-length': '4' };
  const reply = await forwarder.send({ method: 'PUT', target, headers, body, signal });
  expect(reply.status).toBe(201);
  expect(reply.headers['x-seen']).toBe(`PUT ${target}`);
  expect(reply.headers).not.toHaveProperty('connection');
  expect(reply.headers).not.toHaveProperty('transfer-encoding');
  expect((await reply.read(100)).toString()).toBe('body');
});

test('streams go both ways, as bytes', async () => {
  const forwarder = await forwarderTo((request, response) => request.pipe(response));
  const chunks = Array.from({ length: 8 }, (_, index) => Buffer.alloc(MIB, index));
  const body = Readable.from(chunks);
  const reply = await forwarder.send({ ...get, method: 'PUT', body });
  let bytes = 0;
  for await (const chunk of reply.open()) bytes += (chunk as Buffer).length;
  expect(bytes).toBe(8 * MIB);
});

test('an answer that is longer than it may be is not kept', async () => {
  const forwarder = await forwarderTo((_request, response) => response.end(Buffer.alloc(MIB)));
  const reply = await forwarder.send(get);
  await expect(reply.read(1000)).rejects.toMatchObject({ code: 'too-large' });
});

test('a server that is not there has not been sent anything; one that breaks off may have', async () => {
  const nowhere = createHttpForwarder({ address: { socketPath: '/nowhere/at/all' } });
  await expect(nowhere.send(get)).rejects.toMatchObject({
    ...{ code: 'unavailable', details: { sent: false } },
  });
  await nowhere.close();
  const forwarder = await forwarderTo((request) => request.socket.destroy());
  await expect(forwarder.send(get)).rejects.toMatchObject({
    ...{ code: 'unavailable', details: { sent: true } },
  });
});

test('a server that does not speak HTTP is told apart', async () => {
  const server = createTcpServer((socket) => socket.end('certainly not\r\n\r\n'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const forwarder = createHttpForwarder({ address: { host: '127.0.0.1', port } });
  await expect(forwarder.send(get)).rejects.toMatchObject({ code: 'protocol' });
  await forwarder.close();
});

test('the signal ends a request that waits', async () => {
  const forwarder = await forwarderTo(() => undefined);
  const leaving = new AbortController();
  const sent = forwarder.send({ ...get, signal: leaving.signal });
  setTimeout(() => leaving.abort(), 20);
  await expect(sent).rejects.toMatchObject({ code: 'cancelled' });
  await expect(forwarder.send({ ...get, signal: leaving.signal })).rejects.toMatchObject({
    code: 'cancelled',
  });
});

/** A server that pipes what another one answers. */
async function pipingTo(listener: RequestListener) {
  const forwarder = await forwarderTo(listener);
  const outcomes: unknown[] = [];
  const port = await listening(
    createServer(async (_request, response) => {
      const reply = await forwarder.send(get);
      await reply.pipe(response).then(
        () => outcomes.push('done'),
        (error) => outcomes.push(error.code),
      );
    }),
  );
  return { port, outcomes };
}

test('a reader that stops holds the other side back; one that leaves ends it', async () => {
  let written = 0;
  let ended = false;
  const { port, outcomes } = await pipingTo((_request, response) => {
    const chunk = Buffer.alloc(65_536);
    const more = () => {
      while (!response.destroyed && response.write(chunk)) written += chunk.length;
      if (!response.destroyed) response.once('drain', more);
    };
    response.once('close', () => {
      ended = true;
    });
    more();
  });
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  socket.pause();
  await new Promise((resolve) => setTimeout(resolve, 600));
  const before = written;
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(written).toBe(before);
  expect(written).toBeLessThan(64 * MIB);
  socket.destroy();
  while (!ended || outcomes.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(outcomes).toEqual(['cancelled']);
});

test('an answer that breaks off breaks off for the reader too', async () => {
  const { port, outcomes } = await pipingTo((_request, response) => {
    response.writeHead(200, { 'content-length': 1000 });
    response.write('some');
    setTimeout(() => response.destroy(), 50);
  });
  const reply = await fetch(`http://127.0.0.1:${port}/`);
  await expect(reply.text()).rejects.toThrow();
  expect(outcomes).toEqual(['unavailable']);
});
