import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  answerOf,
  at,
  sendOnly,
  takeBytes,
  useWorld,
  type World,
  write,
} from './aether-files-world.ts';
import { type AetherLink, type Stream, until } from './aether-peer.ts';
import { isRoot } from './linux-support.ts';

describe('streams', () => {
  const world = useWorld({});
  describeRawStreams(world);
  describeUnfinishedUploads(world);
  describeLostLinks(world);
  describePorts(world);
});
describe.skipIf(!isRoot)('streams of a session namespace (needs root)', () => {
  const world = useWorld({ sessions: true });
  describeRawStreams(world);
  describeUnfinishedUploads(world);
  describeLostLinks(world);
  describePorts(world);
});

function describeRawStreams(world: () => World): void {
  test('raw streams carry a file both ways, once', async () => {
    const bytes = randomBytes(3_000_000);
    const token = randomBytes(16);
    const upload = world().link.open();
    upload.send('file-write', {
      offset: 0,
      fields: { path: at(world(), 'raw'), createParents: false, exclusive: false, rawToken: token },
    });
    await world().link.ping();
    const up = connect(world().aether.path);
    up.write(token);
    up.end(bytes);
    sayEnd(upload, bytes.length);
    expect(await answerOf(upload)).toMatchObject({ type: 'done', fields: { bytes: bytes.length } });
    expect(readFileSync(at(world(), 'raw')).equals(bytes)).toBe(true);

    const download = world().link.open();
    download.send('file-read', {
      offset: 0,
      fields: { path: at(world(), 'raw'), offset: 0, rawToken: token },
    });
    await world().link.ping();
    const down = connect(world().aether.path);
    down.write(token);
    const parts: Buffer[] = [];
    for await (const part of down) parts.push(part as Buffer);
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
    expect(await answerOf(download)).toMatchObject({
      type: 'done',
      fields: { bytes: bytes.length },
    });

    const again = connect(world().aether.path);
    again.write(token);
    again.end();
    expect(await new Promise((resolve) => again.on('close', () => resolve('closed')))).toBe(
      'closed',
    );
  });

  test('a token that comes before its request is waited for', async () => {
    const bytes = randomBytes(1000);
    await write(world(), at(world(), 'early'), bytes);
    const early = world().link.open();
    const other = randomBytes(16);
    const before = connect(world().aether.path);
    before.write(other);
    await world().link.ping();
    early.send('file-read', {
      offset: 0,
      fields: { path: at(world(), 'early'), offset: 990, rawToken: other },
    });
    const rest: Buffer[] = [];
    for await (const part of before) rest.push(part as Buffer);
    expect(Buffer.concat(rest).equals(bytes.subarray(990))).toBe(true);
    expect((await answerOf(early)).type).toBe('done');
  });
}

const OLD = Buffer.from('the old file');

interface RawUpload {
  readonly stream: Stream;
  readonly socket: Socket;
}

async function beginRawUpload(world: World, link: AetherLink, name: string): Promise<RawUpload> {
  const token = randomBytes(16);
  const stream = link.open();
  const fields = { path: at(world, name), createParents: false, exclusive: false };
  stream.send('file-write', { offset: 0, fields: { ...fields, rawToken: token } });
  await link.ping();
  const socket = connect(world.aether.path);
  socket.on('error', () => {});
  socket.write(token);
  return { stream, socket };
}

function sayEnd(stream: Stream, offset: number): void {
  stream.send('stdin', { offset, data: new Uint8Array(0), end: true });
}

function unfinished({ root }: World): string[] {
  return readdirSync(root).filter((name) => name.startsWith('.dsec-'));
}

/** The end of a raw stream says nothing: the kernel ends it before the link when a host is killed (A7). */
function describeUnfinishedUploads(world: () => World): void {
  test('a raw file appears when both ends say the same, whichever comes first', async () => {
    for (const [name, isEarly] of [
      ['end-first', true],
      ['raw-first', false],
    ] as const) {
      await write(world(), at(world(), name), OLD);
      const { stream, socket } = await beginRawUpload(world(), world().link, name);
      if (isEarly) sayEnd(stream, 3);
      socket.end('new');
      if (!isEarly) {
        await until(() => socket.closed, 'the end of the raw stream');
        await world().link.ping();
        expect(readFileSync(at(world(), name))).toEqual(OLD);
        sayEnd(stream, 3);
      }
      expect(await answerOf(stream)).toMatchObject({ type: 'done', fields: { bytes: 3 } });
      expect(readFileSync(at(world(), name), 'utf8')).toBe('new');
    }
  });

  test('a raw stream that ends at another offset leaves the old file', async () => {
    await write(world(), at(world(), 'other'), OLD);
    for (const offset of [0, 2, 4, Number.MAX_SAFE_INTEGER]) {
      const { stream, socket } = await beginRawUpload(world(), world().link, 'other');
      socket.end('new');
      sayEnd(stream, offset);
      await expect(answerOf(stream)).rejects.toMatchObject({ code: 'unavailable' });
    }
    const { stream, socket } = await beginRawUpload(world(), world().link, 'other');
    sayEnd(stream, 3);
    await new Promise((resolve) => socket.write('ne', resolve));
    socket.destroy();
    await expect(answerOf(stream)).rejects.toMatchObject({ code: 'unavailable' });
    expect(readFileSync(at(world(), 'other'))).toEqual(OLD);
    await until(() => unfinished(world()).length === 0, 'nothing half written');
  });
}

function describeLostLinks(world: () => World): void {
  test('a raw stream that ends before its link, or after it, leaves the old file', async () => {
    await write(world(), at(world(), 'lost'), OLD);
    const before = await beginRawUpload(world(), world().link, 'lost');
    before.socket.end('new');
    await until(() => before.socket.closed, 'the end of the raw stream');
    await until(() => unfinished(world()).length === 1, 'the new file');
    await world().link.ping();
    // A new link ends the one before, as that of an edge that was started again.
    const second = await world().aether.connect({ epoch: 2 });
    await until(() => unfinished(world()).length === 0, 'nothing half written');
    const after = await beginRawUpload(world(), second, 'lost');
    await until(() => unfinished(world()).length === 1, 'the new file');
    world().link = await world().aether.connect({ epoch: 3 });
    after.socket.end('new');
    await until(() => unfinished(world()).length === 0, 'nothing half written');
    expect(readFileSync(at(world(), 'lost'))).toEqual(OLD);
  });

  test('bytes beside a raw stream, and a second end, break the protocol', async () => {
    const bytes = Buffer.from('x');
    const violations: ((stream: Stream) => void)[] = [
      (stream) => stream.send('stdin', { offset: 0, data: bytes, end: true }),
      (stream) => stream.send('stdin', { offset: 0, data: bytes, end: false }),
      (stream) => {
        sayEnd(stream, 1);
        sayEnd(stream, 2);
      },
    ];
    for (const [i, violate] of violations.entries()) {
      const { stream, socket } = await beginRawUpload(world(), world().link, `beside-${i}`);
      violate(stream);
      expect(await world().link.closed).toMatchObject({ code: 'protocol' });
      socket.destroy();
      world().link = await world().aether.connect({ epoch: 4 + i });
    }
    await until(() => unfinished(world()).length === 0, 'nothing half written');
  });
}

function describePorts(world: () => World): void {
  test('ports of the loopback, both ways, in frames and raw', async () => {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('data', (chunk) => socket.write(chunk));
      socket.on('end', () => socket.end('bye'));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const port = (server.address() as { port: number }).port;
    const bytes = randomBytes(500_000);
    const stream = world().link.open();
    stream.send('port-open', { offset: 0, fields: { port } });
    const sending = sendOnly(stream, bytes);
    const got = await takeBytes(stream, sending);
    expect(got.equals(Buffer.concat([bytes, Buffer.from('bye')]))).toBe(true);

    const token = randomBytes(16);
    const raw = world().link.open();
    raw.send('port-open', { offset: 0, fields: { port, rawToken: token } });
    await world().link.ping();
    const socket = connect({ path: world().aether.path, allowHalfOpen: true });
    socket.write(token);
    socket.end('hello ');
    const parts: Buffer[] = [];
    for await (const part of socket) parts.push(part as Buffer);
    expect(Buffer.concat(parts).toString()).toBe('hello bye');
    expect((await answerOf(raw)).type).toBe('done');
    server.close();
    await expect(world().link.ask('port-open', { port })).rejects.toMatchObject({
      code: 'unavailable',
    });
  });
}
