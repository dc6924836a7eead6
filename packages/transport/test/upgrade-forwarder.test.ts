import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { DsecError, toErrorBody } from '@dsec/std';
import { expect, onTestFinished, test } from 'vitest';
import { joinConnections, openUpgrade } from '../src/index.ts';

const signal = new AbortController().signal;
const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'k' };
const request = { target: '/t?x', headers, signal };

async function serverThat(answer: (socket: Socket, head: string) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('data', (chunk) => answer(socket, chunk.toString('latin1')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n';

test('the handshake goes there and back as it is, and what follows it is not lost', async () => {
  let asked = '';
  const address = await serverThat((socket, head) => {
    asked = head;
    socket.write(`${SWITCH}first bytes`);
  });
  const opened = await openUpgrade(address, request);
  expect(asked.split('\r\n')[0]).toBe('GET /t?x HTTP/1.1');
  expect(asked).toContain('sec-websocket-key: k\r\n');
  expect(opened.answer.toString()).toBe(SWITCH);
  expect(opened.head.toString()).toBe('first bytes');
});

test.each(['plain', 'chunked'])('a refusal comes as the error that it is (%s)', async (form) => {
  const body = JSON.stringify(toErrorBody(new DsecError('not-found', 'no such thing')));
  const address = await serverThat((socket) => {
    const head = 'HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\n';
    const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    if (form === 'plain') socket.end(`${head}content-length: ${body.length}\r\n\r\n${body}`);
    else socket.end(`${head}transfer-encoding: chunked\r\n\r\n${chunk}`);
  });
  await expect(openUpgrade(address, request)).rejects.toMatchObject({
    ...{ code: 'not-found', message: 'no such thing' },
  });
});

test('a server that is not there, closes, or never ends its head', async () => {
  await expect(openUpgrade({ socketPath: '/nowhere/at/all' }, request)).rejects.toMatchObject({
    ...{ code: 'unavailable', details: { sent: false } },
  });
  const closing = await serverThat((socket) => socket.end());
  await expect(openUpgrade(closing, request)).rejects.toMatchObject({ code: 'unavailable' });
  const endless = await serverThat((socket) => socket.write('HTTP/1.1 101 x\r\n'.repeat(4000)));
  await expect(openUpgrade(endless, request)).rejects.toMatchObject({ code: 'protocol' });
  const silent = await serverThat(() => undefined);
  await expect(openUpgrade(silent, { ...request, deadlineMs: 50 })).rejects.toMatchObject({
    code: 'deadline-exceeded',
  });
});

test('two connections that are joined pass everything on, and end together', async () => {
  const address = await serverThat((socket, head) => socket.end(head.toUpperCase()));
  const [near, far] = [new PassThrough(), connect(address)];
  const caller = new PassThrough();
  const side = Object.assign(near, { pipe: caller.pipe.bind(caller) });
  let heard = '';
  near.on('data', (chunk) => {
    heard += chunk;
  });
  const joined = joinConnections(side, far);
  caller.write('hello');
  await joined;
  expect(heard).toBe('HELLO');
});
