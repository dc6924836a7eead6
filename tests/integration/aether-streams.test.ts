import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
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
import { isRoot } from './linux-support.ts';

describe('streams', () => {
  const world = useWorld({});
  describeRawStreams(world);
  describePorts(world);
});
describe.skipIf(!isRoot)('streams of a session namespace (needs root)', () => {
  const world = useWorld({ sessions: true });
  describeRawStreams(world);
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
