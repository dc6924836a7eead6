import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AETHER_FRAMES, type AetherFrame } from '@dsec/protocol';
import { type SandboxId, systemClock, systemRandom } from '@dsec/std';
import { createFramedChannel, type FramedChannel } from '@dsec/transport';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type AgentLimits, type AgentLink, connectAgent, openRaw } from '../../src/index.ts';

/** An agent that says what the test wants. */
interface Peer {
  readonly channel: FramedChannel<AetherFrame>;
  say(frame: object): Promise<void>;
  next(): Promise<AetherFrame>;
}

const EPOCH = 5;

describe('a link to an agent', () => {
  let root: string;
  let server: Server;
  let sockets: Socket[];
  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), 'dsec-agent-'));
    sockets = [];
    server = createServer({ allowHalfOpen: true }, (socket) => void sockets.push(socket));
    await new Promise<void>((resolve) => server.listen(join(root, 'sock'), resolve));
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
    rmSync(root, { recursive: true, force: true });
  });

  const dial = async () => {
    const socket = connect(join(root, 'sock'));
    await new Promise((resolve) => socket.once('connect', resolve));
    return socket;
  };
  const accept = async (): Promise<Socket> => {
    while (sockets.length === 0) await new Promise((resolve) => setImmediate(resolve));
    return sockets.shift() as Socket;
  };
  const peerOf = (socket: Socket): Peer => {
    const channel = createFramedChannel(socket, { protocol: AETHER_FRAMES, side: 'server' });
    void channel.closed;
    return {
      channel,
      say: (frame) => channel.send({ epoch: EPOCH, offset: 0, ...frame } as AetherFrame),
      async next() {
        const frame = await channel.receive();
        if (frame === undefined) throw new Error('the link ended');
        return frame;
      },
    };
  };
  const options = (limits: Partial<AgentLimits> = {}) => ({
    ...{ dial, sandboxId: 'sb-s1-e1-aaaaaaaaaaaaaaaa' as SandboxId, epoch: EPOCH, limits },
    ...{ random: systemRandom, clock: systemClock },
  });
  const welcomeFor = (hello: AetherFrame, rest: object = {}) => ({
    ...{ type: 'welcome', stream: 0 },
    fields: {
      nonce: hello.type === 'hello' ? hello.fields.nonce : new Uint8Array(16),
      ...{ version: 1, agentVersion: 'test', instance: Buffer.alloc(16, 7), ...rest },
    },
  });
  const connected = async (limits: Partial<AgentLimits> = {}): Promise<[AgentLink, Peer]> => {
    const link = connectAgent(options(limits));
    const peer = peerOf(await accept());
    await peer.say(welcomeFor(await peer.next()));
    return [await link, peer];
  };
  const data = (stream: number, offset: number, text: string | Buffer, end = false) => ({
    ...{ type: 'stdout', stream, offset, data: Buffer.from(text), end },
  });

  test('drops everything before its own welcome', async () => {
    const link = connectAgent(options());
    const peer = peerOf(await accept());
    const hello = await peer.next();
    await peer.say(data(9, 0, 'of a life before'));
    await peer.say(welcomeFor(hello, { nonce: Buffer.alloc(16, 1) }));
    await peer.say(welcomeFor(hello));
    expect((await link).instance).toBe('07'.repeat(16));
  });

  test('an agent that says nothing is lost, one that refuses says why', async () => {
    await expect(connectAgent(options({ helloMs: 20 }))).rejects.toMatchObject({
      code: 'agent-lost',
    });
    sockets.shift();
    const refused = connectAgent(options());
    const peer = peerOf(await accept());
    await peer.next();
    const fields = { code: 'conflict', message: 'a newer edge was here' };
    await peer.say({ type: 'error', stream: 0, fields });
    await expect(refused).rejects.toMatchObject({ code: 'conflict' });
  });

  test('requests are answered on their own streams, errors are typed', async () => {
    const [link, peer] = await connected();
    const first = link.request('session-close', { sessionId: 'a' });
    const second = link.request('session-close', { sessionId: 'b' });
    const [one, two] = [await peer.next(), await peer.next()];
    await peer.say({ type: 'done', stream: two.stream, fields: {} });
    const fields = { code: 'not-found', message: 'no such session', errnoValue: 2 };
    await peer.say({ type: 'error', stream: one.stream, fields });
    expect((await second).type).toBe('done');
    await expect(first).rejects.toMatchObject({ code: 'not-found', details: { errno: 2 } });
  });

  test.each([
    ['not-found', 'no such user or group: No such file or directory', 'user'],
    ['permission-denied', 'working directory: Permission denied', 'working-directory'],
    ['invalid-argument', 'command: Exec format error', 'command'],
    ['command-not-found', 'anything', 'command'],
    ['not-found', 'commander: the first word is another one', undefined],
  ])('%s, %s: is about %s', async (code, message, about) => {
    const [link, peer] = await connected();
    const asked = link.request('session-close', { sessionId: 'a' });
    const { stream } = await peer.next();
    await peer.say({ type: 'error', stream, fields: { code, message } });
    const details = about === undefined ? {} : { about };
    await expect(asked).rejects.toMatchObject({ code, message, details });
  });

  test('an aborted request is cancelled, and what still comes of it is dropped', async () => {
    const [link, peer] = await connected();
    const stop = new AbortController();
    const asked = link.request('session-close', { sessionId: 'a' }, stop.signal);
    const { stream } = await peer.next();
    stop.abort();
    await expect(asked).rejects.toMatchObject({ code: 'cancelled' });
    expect(await peer.next()).toMatchObject({ type: 'cancel', stream });
    await peer.say({ type: 'done', stream, fields: {} });
    const ping = link.ping();
    const { offset } = await peer.next();
    await peer.say({ type: 'pong', stream: 0, offset, fields: {} });
    await ping;
  });

  test('a slow reader holds up itself, and gives credit as it reads', async () => {
    const [link, peer] = await connected();
    const slow = link.open();
    const quick = link.open();
    await slow.send('port-open', { port: 1 });
    await quick.send('port-open', { port: 2 });
    await peer.next();
    await peer.next();
    for (let at = 0; at < 65_536; at += 16) {
      await peer.say(data(slow.number, at, Buffer.alloc(16, at / 16)));
    }
    await peer.say(data(quick.number, 0, 'quick', true));
    expect(await quick.receive()).toMatchObject({ data: Buffer.from('quick'), end: true });
    let read = 0;
    while (read < 65_536) {
      const frame = await slow.receive();
      if (frame.type !== 'stdout') throw new Error(frame.type);
      expect(frame.offset).toBe(read);
      frame.data.forEach((byte, n) => {
        if (byte !== (Math.floor((read + n) / 16) & 0xff)) throw new Error('another byte');
      });
      read += frame.data.byteLength;
    }
    expect(await peer.next()).toMatchObject({ type: 'credit', fields: { channel: 'stdout' } });
  });

  test('input waits for credit', async () => {
    const [link, peer] = await connected();
    const stream = link.open();
    stream.openInput(10, 14);
    const written = stream.write(Buffer.from('abcdefgh'));
    expect(await peer.next()).toMatchObject({
      type: 'stdin',
      offset: 10,
      data: Buffer.from('abcd'),
    });
    await peer.say({
      ...{ type: 'credit', stream: stream.number, offset: 99, fields: { channel: 'stdin' } },
    });
    expect(await peer.next()).toMatchObject({ offset: 14, data: Buffer.from('efgh') });
    await written;
    await stream.endInput();
    expect(await peer.next()).toMatchObject({ offset: 18, end: true });
  });

  test.each<[string, (stream: number) => object[]]>([
    ['more than the credit', (n) => [data(n, 0, Buffer.alloc(65_536)), data(n, 65_536, 'x')]],
    ['a gap', (n) => [data(n, 1, 'x')]],
    ['an overlap', (n) => [data(n, 0, 'xy'), data(n, 1, 'x')]],
    ['a stream that was never opened', () => [data(99, 0, 'x')]],
    ['a frame of another epoch', (n) => [{ ...data(n, 0, 'x'), epoch: 4 }]],
    ['an answer that nobody asked for', () => [{ type: 'pong', stream: 0, fields: {} }]],
    ['a second welcome', () => [welcomeFor({ type: 'pong' } as AetherFrame)]],
    [
      'an unknown error',
      (n) => [{ type: 'error', stream: n, fields: { code: 'odd', message: '' } }],
    ],
    [
      'control frames without end',
      (n) => Array.from({ length: 65 }, () => ({ type: 'done', stream: n, fields: {} })),
    ],
    [
      'credit that goes back',
      (n) => [{ type: 'credit', stream: n, offset: 1, fields: { channel: 'stdin' } }],
    ],
  ])('%s closes the link as protocol', async (_, frames) => {
    const [link, peer] = await connected();
    const stream = link.open();
    for (const frame of frames(stream.number)) await peer.say(frame).catch(() => {});
    expect(await link.closed).toMatchObject({ code: 'protocol' });
    expect(() => link.open()).toThrow();
    const drained = async () => {
      for (;;) await stream.receive();
    };
    await expect(drained()).rejects.toBeDefined();
    await expect(link.ping()).rejects.toMatchObject({ code: 'protocol' });
  });

  test('streams are bounded', async () => {
    const [link] = await connected({ streamsMax: 2 });
    link.open();
    const second = link.open();
    expect(() => link.open()).toThrow('requests are open');
    second.leave();
    link.open();
  });

  test('everything ends with the link, with its reason', async () => {
    const [link, peer] = await connected();
    const failures: unknown[] = [];
    link.openSink({
      frame: () => {},
      inputCredit: () => {},
      failed: (error, fromAgent) => failures.push([error.code, fromAgent]),
    });
    const waiting = link.open().receive();
    waiting.catch(() => {});
    peer.channel.close();
    expect(await link.closed).toMatchObject({ code: 'unavailable' });
    await expect(waiting).rejects.toMatchObject({ code: 'unavailable' });
    expect(failures).toEqual([['unavailable', false]]);
  });

  test('reseeding is answered or refused', async () => {
    const [link, peer] = await connected();
    const entropy = new Uint8Array(32);
    const done = link.reseed({ entropy });
    await peer.next();
    await peer.say({ type: 'reseeded', stream: 0, fields: {} });
    await done;
    const refused = link.reseed({ entropy });
    await peer.next();
    await peer.say({ type: 'error', stream: 0, fields: { code: 'internal', message: 'no' } });
    await expect(refused).rejects.toMatchObject({ code: 'internal' });
  });

  test('a raw stream begins with its token', async () => {
    const token = Buffer.alloc(16, 3);
    const raw = await openRaw(dial, token);
    raw.end('bytes');
    const parts: Buffer[] = [];
    for await (const part of await accept()) parts.push(part as Buffer);
    expect(Buffer.concat(parts)).toEqual(Buffer.concat([token, Buffer.from('bytes')]));
  });
});
