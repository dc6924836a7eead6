import { once } from 'node:events';
import { AETHER_FRAMES, type AetherFrame, createFrameDecoder, encodeFrame } from '@dsec/protocol';
import { createSeededRandom, DsecError, systemClock, systemRandom } from '@dsec/std';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SandboxPlan } from '../src/backend.ts';
import { execFields, run } from '../src/conformance/command-run.ts';
import { type AgentLink, type AgentStream, connectAgent, openRaw } from '../src/index.ts';
import { createSimBackend, createSimWorld, type SimBackend } from '../src/sim/index.ts';
import { createPlanner } from './sim-harness.ts';

let backend: SimBackend;
let plan: SandboxPlan;
beforeEach(async () => {
  const world = createSimWorld({ clock: systemClock, random: createSeededRandom(1) });
  backend = createSimBackend(world);
  plan = createPlanner(1)();
  await backend.create(plan);
});
afterEach(() => backend.stop(plan.key));

const dial = (signal?: AbortSignal) => backend.dial(plan.key, signal);

function connect(epoch = 10): Promise<AgentLink> {
  return connectAgent({
    dial,
    sandboxId: plan.key.id,
    epoch,
    random: systemRandom,
    clock: systemClock,
  });
}

describe('hello', () => {
  test('the newer host has the link, the older one loses it', async () => {
    const first = await connect();
    const second = await connect();
    await first.closed;
    await second.ping();
    expect(second.instance).toBe(first.instance);
  });

  test('a host of an older epoch is refused and changes nothing', async () => {
    const newer = await connect();
    await expect(connect(9)).rejects.toMatchObject({ code: 'conflict' });
    await newer.ping();
  });

  test('a restored copy is told what it must know', async () => {
    const link = await connect();
    await link.reseed({ entropy: systemRandom.bytes(64) });
    await link.ping();
  });

  test('a hello may come byte by byte, and what follows it is not lost', async () => {
    const duplex = await dial();
    const fields = { nonce: systemRandom.bytes(16), versionMax: 1, sandboxId: plan.key.id };
    const frames: AetherFrame[] = [
      { type: 'hello', stream: 0, epoch: 10, offset: 0, fields },
      { type: 'ping', stream: 0, epoch: 10, offset: 77, fields: {} },
    ];
    for (const byte of Buffer.concat(frames.map((frame) => encodeFrame(AETHER_FRAMES, frame)))) {
      duplex.write(Buffer.from([byte]));
    }
    const decoder = createFrameDecoder(AETHER_FRAMES, { from: 'server' });
    const types: string[] = [];
    while (types.length < 2) {
      const [chunk] = await once(duplex, 'data');
      types.push(...decoder.push(chunk).map((frame) => frame.type));
    }
    expect(types).toEqual(['welcome', 'pong']);
    duplex.destroy();
  });
});

describe('a violation closes the link and nothing else', () => {
  const asleep = execFields(['sleep', '60000'], { input: new Uint8Array(0) });
  const offences: Record<string, (stream: AgentStream) => Promise<void>> = {
    'a stream that is in use': (stream) => stream.send('exec-start', asleep),
    'input with a gap': async (stream) => {
      stream.openInput(5, 100);
      await stream.write(new Uint8Array(1));
    },
    'input beyond the credit': async (stream) => {
      stream.openInput(0, 2 ** 20);
      await stream.write(new Uint8Array(400_000));
    },
    'an acknowledgement of what was never sent': (stream) =>
      stream.send('ack', { channel: 'stdout' }, 1000),
    'a resize without a terminal': (stream) => stream.send('resize', { rows: 1, columns: 1 }),
    'an acknowledgement of input': (stream) => stream.send('ack', { channel: 'stdin' }, 0),
  };

  test.each(Object.entries(offences))('%s', async (_, offend) => {
    const link = await connect();
    const stream = link.open();
    await stream.send('exec-start', asleep);
    await offend(stream).catch(() => {});
    const error = await link.closed;
    expect(['protocol', 'unavailable']).toContain(error.code);
    const next = await connect();
    expect((await run(next, ['exit', '2'])).exitCode).toBe(2);
  });
});

describe('ports and raw streams', () => {
  const bytes = createSeededRandom(2).bytes(500_000);

  async function takeAll(stream: AgentStream): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    for (;;) {
      const frame = await stream.receive();
      if (frame.type === 'stdout') parts.push(frame.data);
      if (frame.type === 'done') return Buffer.concat(parts);
    }
  }

  test('a port in frames, both ways', async () => {
    const link = await connect();
    const stream = link.open();
    await stream.send('port-open', { port: 7 });
    const taking = takeAll(stream);
    await stream.write(bytes);
    await stream.endInput();
    expect((await taking).equals(bytes)).toBe(true);
    await expect(link.request('port-open', { port: 8 })).rejects.toMatchObject({
      code: 'unavailable',
    });
  });

  test('raw streams carry a file both ways, once', async () => {
    const link = await connect();
    const rawToken = systemRandom.bytes(16);
    const path = Buffer.from('/tmp/raw');
    const upload = link.open();
    await upload.send('file-write', { path, createParents: false, exclusive: false, rawToken });
    const up = await openRaw(dial, rawToken);
    up.end(bytes);
    await upload.endInput(bytes.length);
    expect(await upload.receive()).toMatchObject({ type: 'done', fields: { bytes: bytes.length } });
    // Before its request this time.
    const down = await openRaw(dial, rawToken);
    const download = link.open();
    await download.send('file-read', { path, offset: 0, rawToken });
    const parts: Buffer[] = [];
    for await (const part of down) parts.push(part);
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
    expect(await download.receive()).toMatchObject({
      type: 'done',
      fields: { bytes: bytes.length },
    });
  });

  test('a raw stream that ends without a word, or at another offset, leaves the old file', async () => {
    const path = Buffer.from('/tmp/raw-kept');
    for (const offset of [undefined, 0, bytes.length - 1, bytes.length + 1]) {
      const link = await connect();
      const rawToken = systemRandom.bytes(16);
      const upload = link.open();
      await upload.send('file-write', { path, createParents: false, exclusive: false, rawToken });
      const up = await openRaw(dial, rawToken);
      up.on('error', () => {}).end(bytes);
      const code = offset === undefined ? 'cancelled' : 'unavailable';
      const refused = expect(upload.receive()).rejects.toMatchObject({ code });
      if (offset !== undefined) await upload.endInput(offset);
      else {
        await link.ping();
        link.close(new DsecError('cancelled', 'the host is gone'));
      }
      await refused;
    }
    const link = await connect();
    await expect(link.request('file-stat', { path, followSymlinks: true })).rejects.toMatchObject({
      code: 'not-found',
    });
  });

  test('a request that was given up leaves no file', async () => {
    const link = await connect();
    const path = Buffer.from('/tmp/half');
    const stream = link.open();
    await stream.send('file-write', { path, createParents: false, exclusive: false });
    await stream.write(bytes);
    await stream.send('cancel', {});
    await expect(takeAll(stream)).rejects.toMatchObject({ code: 'cancelled' });
    await expect(link.request('file-stat', { path, followSymlinks: true })).rejects.toMatchObject({
      code: 'not-found',
    });
  });
});

describe('bounds', () => {
  test('commands whose results nobody takes', async () => {
    const link = await connect();
    const codes = await Promise.all(
      Array.from({ length: 1100 }, () =>
        link.request('exec-start', execFields(['/no/such'])).catch((error) => error.code),
      ),
    );
    expect(codes.filter((code) => code === 'command-not-found')).toHaveLength(1024);
    expect(codes.filter((code) => code === 'overloaded')).toHaveLength(76);
  });

  test('processes and disk of a sandbox', async () => {
    const link = await connect();
    await backend.update(plan.key, { pidsMax: 8, diskBytes: 1000, inodesMax: 64 });
    const results = await Promise.all(
      Array.from({ length: 9 }, () =>
        run(link, ['sleep', '100']).then(
          () => 'ran',
          (error) => error.code,
        ),
      ),
    );
    expect(results.filter((result) => result === 'overloaded')).toHaveLength(1);
    const stream = link.open();
    await stream.send('file-write', {
      path: Buffer.from('/tmp/big'),
      createParents: false,
      exclusive: false,
    });
    await stream.write(new Uint8Array(2000));
    await stream.endInput();
    await expect(
      (async () => {
        for (;;) await stream.receive();
      })(),
    ).rejects.toMatchObject({ code: 'storage-full' });
  });
});
