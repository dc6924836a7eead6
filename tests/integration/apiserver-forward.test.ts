import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { decodeAttachData, encodeAttachData, ROUTES } from '@dsec/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Caller, createOne, type Fleet, openFleet } from './apiserver-world.ts';

const MIB = 1024 * 1024;
let fleet: Fleet;
let caller: Caller;
let id: string;
beforeAll(async () => {
  fleet = await openFleet();
  caller = await fleet.callerOf('p');
  id = (await createOne(caller)).id;
});
afterAll(() => fleet.close());

const params = () => ({ sandboxId: id });
const portOf = () => (fleet.apiservers[0] as unknown as { address: { port: number } }).address.port;
const headers = () => ({ authorization: `Bearer ${caller.key}` });

async function* chunks(count: number): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index += 1) yield Buffer.alloc(MIB, index + 1);
}

/** A request as it stands, and all that comes back. */
async function raw(text: string): Promise<string> {
  const socket = connect(portOf(), '127.0.0.1');
  socket.write(text);
  let answer = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    answer += chunk;
  });
  await once(socket, 'close');
  return answer;
}

test('files of any size and name go up and down', async () => {
  const names = ['/tmp/plain', '/tmp/with space', '/tmp/ünï', '/tmp/a%2Fb?c&d#e'];
  for (const path of names) {
    const query = { path };
    const written = await caller.call(ROUTES.writeFile, {
      ...{ params: params(), query, body: chunks(3) },
    });
    expect(written.sizeBytes).toBe(3 * MIB);
    const reply = await caller.call(ROUTES.readFile, { params: params(), query });
    expect(reply.headers['dsec-size-bytes']).toBe(String(3 * MIB));
    let bytes = 0;
    for await (const chunk of reply.body) bytes += chunk.byteLength;
    expect(bytes).toBe(3 * MIB);
  }
});

test('an upload that the edge refuses early is refused, and the caller can read why', async () => {
  const query = { path: '/no/such/directory/file' };
  await expect(
    caller.call(ROUTES.writeFile, { params: params(), query, body: chunks(40) }),
  ).rejects.toMatchObject({ code: 'not-found' });
});

test('a caller that breaks its upload off leaves no file', async () => {
  const path = '/tmp/broken';
  const { socket } = await startUpload(path, 10 * MIB);
  socket.write(Buffer.alloc(MIB));
  await new Promise((resolve) => setTimeout(resolve, 100));
  socket.destroy();
  const stat = () => caller.call(ROUTES.statFile, { params: params(), query: { path } });
  await expect(stat()).rejects.toMatchObject({ code: 'not-found' });
});

async function startUpload(path: string, bytes: number): Promise<{ socket: Socket }> {
  const request = httpRequest({
    ...{
      host: '127.0.0.1',
      port: portOf(),
      method: 'PUT',
      headers: { ...headers(), 'content-length': bytes },
    },
    path: `/v1/sandboxes/${id}/files/content?path=${encodeURIComponent(path)}`,
  });
  request.on('error', () => {});
  request.flushHeaders();
  const [socket] = (await once(request, 'socket')) as [Socket];
  return { socket };
}

test('output is followed to its end, and a caller that leaves costs nothing', async () => {
  const started = await caller.call(ROUTES.startExec, {
    ...{ params: params(), body: { argv: ['sleep', '0.2'], waitMs: 0 } },
  });
  const target = { ...params(), execId: started.exec.id };
  const reply = await caller.call(ROUTES.readExecOutput, {
    ...{ params: target, query: { follow: true } },
  });
  let bytes = 0;
  for await (const chunk of reply.body) bytes += chunk.byteLength;
  expect(bytes).toBe(0);
});

test('a WebSocket goes through both ways, and ends as the edge ends it', async () => {
  const body = { argv: ['cat'], stdin: true, waitMs: 0 };
  const { exec } = await caller.call(ROUTES.startExec, { params: params(), body });
  const channel = await caller.socket(`/v1/sandboxes/${id}/execs/${exec.id}/attach`);
  const data = Buffer.from('to and fro\n');
  await channel.send(encodeAttachData({ channel: 'stdin', offset: 0, data }));
  await channel.send(JSON.stringify({ type: 'stdin-end', offset: data.length }));
  let output = '';
  const types: string[] = [];
  for await (const message of channel.messages()) {
    if (typeof message === 'string') types.push(JSON.parse(message).type);
    else output += Buffer.from(decodeAttachData(message).data).toString();
  }
  expect(output).toBe('to and fro\n');
  expect(types.at(-1)).toBe('exit');
  expect(await channel.closed).toBeUndefined();
});

test('a WebSocket that is refused says why; one that is none is no WebSocket', async () => {
  const absent = `/v1/sandboxes/${id}/execs/ex-aaaaaaaaaaaaaaaa/attach`;
  const elsewhere = absent.replace(id, 'sb-s1-e1-bbbbbbbbbbbbbbbb');
  await expect(caller.socket(elsewhere)).rejects.toMatchObject({ code: 'not-found' });
  const channel = await caller.socket(absent);
  expect((await channel.closed)?.code).toBe('not-found');
  const plain = await caller.fetch(absent);
  expect(await plain.json()).toMatchObject({ code: 'invalid-argument' });
});

test('nobody is let in without a key, and nobody learns which keys there are', async () => {
  const target = `/v1/sandboxes/${id}`;
  const answers = [];
  for (const authorization of [
    ...['', 'Bearer', 'Bearer x', `Basic ${caller.key}`, `bearer ${caller.key}x`],
    `Bearer dsec_${'A'.repeat(43)}`,
  ]) {
    const reply = await caller.fetch(target, { headers: { authorization } });
    answers.push([reply.status, await reply.text()]);
  }
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
  expect(answers[0]?.[0]).toBe(401);
  const withQuery = await caller.fetch(`${target}?key=${caller.key}`, {
    headers: { authorization: '' },
  });
  expect(withQuery.status).toBe(401);
});

test('a scope that is missing is named; sandboxes of unknown edges are not there', async () => {
  const reader = await fleet.callerOf('p', { scopes: ['sandboxes:read'] });
  const body = { argv: ['true'] };
  await expect(reader.call(ROUTES.startExec, { params: params(), body })).rejects.toMatchObject({
    ...{ code: 'permission-denied', details: { scope: 'exec' } },
  });
  for (const other of [id.replace('-e1-', '-evil-'), id.replace('sb-s1-', 'sb-s2-')]) {
    const reply = await caller.fetch(`/v1/sandboxes/${other}`);
    expect([reply.status, ((await reply.json()) as { message: string }).message]).toEqual([
      404,
      'there is no such sandbox',
    ]);
  }
});

test('asked for under another name, or by a page of another site, it refuses', async () => {
  const head = (lines: string[]) =>
    [`GET /v1/sandboxes/${id} HTTP/1.1`, ...lines, '', ''].join('\r\n');
  const key = `authorization: Bearer ${caller.key}`;
  expect(await raw(head(['host: evil.example', key, 'connection: close']))).toContain(' 403 ');
  const origin = ['host: localhost', key, 'origin: https://evil.example', 'connection: close'];
  expect(await raw(head(origin))).toContain(' 403 ');
  expect(await raw(head(['host: localhost', key, 'connection: close']))).toContain(' 200 ');
});

test('what the caller says of tickets and of the edge is not passed on', async () => {
  const forged = {
    ...{ 'dsec-ticket': 'dt1.x.y.z', 'dsec-sandbox': 'sb-s1-e1-aaaaaaaaaaaaaaaa' },
    ...{ 'dsec-stream': 'A'.repeat(22), 'x-forwarded-for': '1.2.3.4' },
  };
  const reply = await caller.fetch(`/v1/sandboxes/${id}`, { headers: forged });
  expect(reply.status).toBe(200);
  const body = JSON.stringify({ layers: ['base/t:1.0.0'] });
  const made = await caller.fetch('/v1/sandboxes', {
    ...{ method: 'POST', body, headers: { ...forged, 'content-type': 'application/json' } },
  });
  expect(((await made.json()) as { id: string }).id).not.toBe('sb-s1-e1-aaaaaaaaaaaaaaaa');
});

test('bodies that do not fit are refused where they come in', async () => {
  const post = (body: string, type = 'application/json') =>
    caller.fetch(`/v1/sandboxes/${id}/execs`, {
      ...{ method: 'POST', body, headers: { 'content-type': type } },
    });
  expect((await post('x'.repeat(MIB + 1))).status).toBe(413);
  expect((await post('{"argv": ')).status).toBe(400);
  expect((await post('{"__proto__": {}, "argv": ["true"]}')).status).toBe(400);
  expect((await post('argv=true', 'text/plain')).status).toBe(400);
  expect((await post('{"argv": ["true"], "waitMs": 1000}')).status).toBe(201);
  const withBody = await caller.fetch(`/v1/sandboxes/${id}/stop?x=1`, {
    method: 'POST',
    body: '{}',
  });
  expect(withBody.status).toBe(400);
});

test('a keyed request that comes twice is done once', async () => {
  const body = { argv: ['true'], waitMs: 1000 };
  const start = () =>
    caller.call(ROUTES.startExec, { params: params(), body }, { idempotencyKey: 'once' });
  const [one, two] = await Promise.all([start(), start()]);
  expect(one.exec.id).toBe(two.exec.id);
});

test('an edge that has just started is waited for, by everything that may be asked again', async () => {
  const young = await openFleet({ justStarted: true });
  try {
    const asker = await young.callerOf('p');
    const [one, listed] = await Promise.all([
      createOne(asker, {}, 'first'),
      asker.call(ROUTES.listSandboxes, {}),
    ]);
    expect(one.state).toBe('running');
    expect(listed.sandboxes.length).toBeLessThan(2);
  } finally {
    await young.close();
  }
});

test('a slow reader holds its edge back, and not memory here', async () => {
  const path = '/tmp/large';
  const query = { path };
  await caller.call(ROUTES.writeFile, { params: params(), query, body: chunks(64) });
  const before = process.memoryUsage().arrayBuffers;
  const sockets = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const socket = connect(portOf(), '127.0.0.1');
      const target = `/v1/sandboxes/${id}/files/content?path=${encodeURIComponent(path)}`;
      const lines = ['host: localhost', `authorization: Bearer ${caller.key}`, '', ''];
      socket.write([`GET ${target} HTTP/1.1`, ...lines].join('\r\n'));
      socket.pause();
      return socket;
    }),
  );
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 12 * MIB);
  for (const socket of sockets) socket.destroy();
});
