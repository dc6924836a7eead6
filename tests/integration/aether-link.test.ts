import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { AETHER_FRAMES, type AetherFrame, createFrameDecoder, encodeFrame } from '@dsec/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Aether,
  type AetherLink,
  openLink,
  run,
  startAether,
  startFields,
  unlessError,
} from './aether-peer.ts';
import { isRoot } from './linux-support.ts';

let aether: Aether;
beforeAll(async () => {
  aether = await startAether();
});
afterAll(() => aether.stop());

let epoch = 10;
const host = () => aether.connect({ epoch });

describe('hello', () => {
  test('the newer host has the link, the older one loses it', async () => {
    const first = await host();
    const second = await host();
    await first.closed;
    await second.ping();
    expect(second.welcome.instance).toEqual(first.welcome.instance);
    epoch += 1;
    const third = await host();
    await second.closed;
    await third.ping();
    third.close();
  });

  test('a host of an older epoch is refused and changes nothing', async () => {
    const newer = await host();
    await expect(openLink(aether.path, epoch - 1)).rejects.toMatchObject({ code: 'conflict' });
    await newer.ping();
    newer.close();
  });

  test('nonsense in place of a hello is refused', async () => {
    const newer = await host();
    const nonsense = [
      Buffer.alloc(24),
      Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
      pingFrame(),
    ];
    // What could be the token of a request to come has some seconds for it.
    await Promise.all(
      nonsense.map((bytes) => {
        const guest = raw();
        guest.write(bytes);
        return gone(guest);
      }),
    );
    await newer.ping();
    newer.close();
  });

  test('a hello may come byte by byte, and what follows it is not lost', async () => {
    const guest = raw();
    const hello = { nonce: Buffer.alloc(16, 7), versionMax: 1, sandboxId: 'sb-a-b-c' };
    const bytes = Buffer.concat([
      encode({ type: 'hello', stream: 0, offset: 0, fields: hello }),
      pingFrame(),
    ]);
    for (const byte of bytes) guest.write(Buffer.from([byte]));
    const decoder = createFrameDecoder(AETHER_FRAMES, { from: 'server' });
    const types: string[] = [];
    for await (const chunk of guest) {
      types.push(...decoder.push(chunk as Buffer).map((frame) => frame.type));
      if (types.includes('pong')) break;
    }
    expect(types).toEqual(['welcome', 'pong']);
    guest.destroy();
  });

  test('connections that say nothing leave room for others', async () => {
    const silent = Array.from({ length: 40 }, () => raw());
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const socket of silent) socket.destroy();
    const link = await host();
    await link.ping();
    link.close();
  });
});

describe('a violation closes the link and nothing else', () => {
  const start = (fields: object = {}) => ({
    ...startFields({ shell: Buffer.from('sleep 60') }),
    ...fields,
  });

  test.each<[string, (link: AetherLink) => void]>([
    ['an unknown type', (link) => link.write(header({ type: 0x7f }))],
    ['a frame of the other side', (link) => link.write(header({ type: 0x02 }))],
    ['a length beyond all limits', (link) => link.write(header({ length: 2 ** 31 }))],
    ['another version', (link) => link.write(header({ version: 2 }))],
    ['an unknown flag', (link) => link.write(header({ flags: 2 }))],
    ['a stream for a frame without one', (link) => link.write(header({ stream: 3 }))],
    ['another epoch', (link) => link.write(header({ epoch: epoch - 1 }))],
    ['a second hello', (link) => link.write(helloFrame())],
    [
      'a payload that is no message',
      (link) =>
        link.write(Buffer.concat([header({ type: 0x10, stream: 1, length: 4 }), Buffer.alloc(4)])),
    ],
    [
      'a stream that is in use',
      (link) => {
        const stream = link.open();
        stream.send('exec-start', { offset: 0, fields: start() });
        stream.send('exec-start', { offset: 0, fields: start() });
      },
    ],
    [
      'input beyond the credit',
      (link) => {
        const stream = link.open();
        stream.send('exec-start', { offset: 0, fields: start({ stdinOpen: true }) });
        for (let offset = 0; offset < 400_000; offset += 50_000) {
          stream.send('stdin', { offset, data: Buffer.alloc(50_000), end: false });
        }
      },
    ],
    [
      'input with a gap',
      (link) => {
        const stream = link.open();
        stream.send('exec-start', { offset: 0, fields: start({ stdinOpen: true }) });
        stream.send('stdin', { offset: 5, data: Buffer.from('x'), end: false });
      },
    ],
    [
      'an acknowledgement of what was never sent',
      (link) => {
        const stream = link.open();
        stream.send('exec-start', { offset: 0, fields: start() });
        stream.send('ack', { offset: 1000, fields: { channel: 'stdout' } });
      },
    ],
    [
      'a resize without a terminal',
      (link) => {
        const stream = link.open();
        stream.send('exec-start', { offset: 0, fields: start() });
        stream.send('resize', { offset: 0, fields: { rows: 1, columns: 1 } });
      },
    ],
  ])('%s', async (_, offend) => {
    const link = await host();
    offend(link);
    // Why is told as far as possible: whoever is still writing may lose it to the reset.
    expect((await link.closed)?.code ?? 'protocol').toBe('protocol');
    const next = await host();
    await next.ping();
    next.close();
  });
});

describe.skipIf(!isRoot)('reseed (needs root)', () => {
  const entropy = Buffer.alloc(64, 5);

  const reseed = (link: AetherLink) =>
    link.write(encode({ type: 'reseed', stream: 0, offset: 1, epoch: 1, fields: { entropy } }));

  test('is answered when it was done', async () => {
    const fresh = await startAether();
    const link = await fresh.connect();
    reseed(link);
    // Its answer comes before that of the ping.
    await expect(link.ping()).rejects.toMatchObject({
      message: expect.stringContaining('reseeded'),
    });
    await fresh.stop();
  });

  test('ends the link when it cannot be done', async () => {
    const fresh = await startAether({ sessions: true });
    const link = await fresh.connect();
    reseed(link);
    expect(await link.closed).toMatchObject({ code: 'permission-denied' });
    await fresh.stop();
  });
});

describe('bounds', () => {
  test('commands whose results nobody takes are bounded, and each refusal is told', async () => {
    const fresh = await startAether();
    const link = await fresh.connect();
    const answers = await Promise.all(
      Array.from({ length: 1100 }, async (_, i) => {
        const stream = link.open();
        const fields = startFields({ argv: [Buffer.from('/no/such')] });
        stream.send('exec-start', { offset: 0, fields: { ...fields, execId: `bound-${i}` } });
        const frame = await stream.next();
        return frame.type === 'error' ? frame.fields.code : frame.type;
      }),
    );
    expect(answers.filter((code) => code === 'command-not-found')).toHaveLength(1024);
    expect(answers.filter((code) => code === 'overloaded')).toHaveLength(76);
    for (let i = 0; i < 1100; i++) {
      link.open().send('exec-exit-ack', { offset: 0, fields: { execId: `bound-${i}` } });
    }
    expect((await run(link, 'echo room')).stdout.toString()).toBe('room\n');
    await fresh.stop();
  });

  test('a host that does not read stops the command, not aether', async () => {
    const link = await host();
    const stream = link.open();
    const fields = startFields({ shell: Buffer.from('yes'), windowBytes: 1024 * 1024 });
    stream.send('exec-start', { offset: 0, fields });
    while (unlessError(await stream.next()).type !== 'stdout');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(anonymousKib(aether.pid)).toBeLessThan(6144);
    stream.send('signal', { offset: 0, fields: { signal: 9, scope: 'tree' } });
    link.close();
    const next = await host();
    expect((await run(next, 'echo well')).stdout.toString()).toBe('well\n');
    next.close();
  });
});

function anonymousKib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]);
}

function encode(frame: object): Uint8Array {
  return encodeFrame(AETHER_FRAMES, { epoch, ...frame } as AetherFrame);
}

function pingFrame(): Uint8Array {
  return encode({ type: 'ping', stream: 0, offset: 1, fields: {} });
}

function helloFrame(): Uint8Array {
  const fields = { nonce: Buffer.alloc(16), versionMax: 1, sandboxId: 'sb-a-b-c' };
  return encode({ type: 'hello', stream: 0, offset: 0, fields });
}

interface Header {
  readonly length?: number;
  readonly version?: number;
  readonly type?: number;
  readonly flags?: number;
  readonly stream?: number;
  readonly epoch?: number;
}

function header(values: Header): Uint8Array {
  const bytes = Buffer.alloc(24);
  bytes.writeUInt32LE(values.length ?? 0, 0);
  bytes.writeUInt8(values.version ?? 1, 4);
  bytes.writeUInt8(values.type ?? 0x03, 5);
  bytes.writeUInt16LE(values.flags ?? 0, 6);
  bytes.writeUInt32LE(values.stream ?? 0, 8);
  bytes.writeUInt32LE(values.epoch ?? epoch, 12);
  return bytes;
}

function raw(): Socket {
  const socket = connect(aether.path);
  socket.on('error', () => {});
  return socket;
}

function gone(socket: Socket): Promise<void> {
  socket.resume();
  return new Promise((resolve) => socket.once('close', () => resolve()));
}
