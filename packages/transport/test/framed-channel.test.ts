import { Duplex } from 'node:stream';
import { AETHER_FRAMES, type AetherFrame, encodeFrame, FRAME_DATA_BYTES_MAX } from '@dsec/protocol';
import { createManualClock, createSeededRandom, DsecError, KIB } from '@dsec/std';
import { afterEach, describe, expect, it } from 'vitest';
import { createFramedChannel, type FramedChannelLimits, startDeadline } from '../src/index.ts';
import { settled, socketPair, until } from './support/socket-pair.ts';

const open: Duplex[] = [];
afterEach(() => {
  for (const duplex of open.splice(0)) duplex.destroy();
});

function channelOn(
  duplex: Duplex,
  side: 'client' | 'server',
  limits?: Partial<FramedChannelLimits>,
) {
  open.push(duplex);
  return createFramedChannel(duplex, { protocol: AETHER_FRAMES, side, ...(limits && { limits }) });
}

async function pair(limits?: Partial<FramedChannelLimits>) {
  const [a, b] = await socketPair();
  return { host: channelOn(a, 'client', limits), agent: channelOn(b, 'server', limits), a, b };
}

const output = (offset: number, data: Uint8Array, end = false): AetherFrame => ({
  type: 'stdout',
  stream: 1,
  epoch: 1,
  offset,
  data,
  end,
});
const ping = (offset: number): AetherFrame => ({
  type: 'ping',
  stream: 0,
  epoch: 1,
  offset,
  fields: {},
});

/** What a reader of bytes sees of data frames. */
function joined(frames: readonly AetherFrame[]) {
  let offset = 0;
  const parts: Uint8Array[] = [];
  for (const frame of frames) {
    if (!('data' in frame)) throw new Error(`a ${frame.type} among data`);
    expect(frame.offset).toBe(offset);
    offset += frame.data.byteLength;
    parts.push(frame.data);
  }
  const last = frames.at(-1);
  return { bytes: Buffer.concat(parts), ended: last !== undefined && 'end' in last && last.end };
}

async function collect(frames: AsyncIterable<AetherFrame>): Promise<AetherFrame[]> {
  const all: AetherFrame[] = [];
  for await (const frame of frames) all.push(frame);
  return all;
}

describe('framed channel', () => {
  it('carries frames of every size, in order, both ways at once', async () => {
    const { host, agent } = await pair();
    const random = createSeededRandom(1);
    const sizes = [
      1,
      100,
      4 * KIB,
      4 * KIB + 1,
      65_000,
      FRAME_DATA_BYTES_MAX,
      3,
      FRAME_DATA_BYTES_MAX,
    ];
    const parts = sizes.map((size) => random.bytes(size));
    const down = collect(host.frames());
    const up = collect(agent.frames());
    let offset = 0;
    for (const [index, data] of parts.entries()) {
      await agent.send(output(offset, data, index === parts.length - 1));
      await host.send(ping(index));
      offset += data.byteLength;
    }
    await Promise.all([agent.end(), host.end()]);
    const { bytes, ended } = joined(await down);
    expect(bytes.equals(Buffer.concat(parts))).toBe(true);
    expect(ended).toBe(true);
    expect((await up).map((frame) => frame.offset)).toEqual([...parts.keys()]);
    expect(await host.closed).toBeUndefined();
  });

  it('reads frames whose bytes come one at a time', async () => {
    const [a, b] = await socketPair();
    const host = channelOn(a, 'client');
    open.push(b);
    const sent = Buffer.concat([
      encodeFrame(AETHER_FRAMES, output(0, Buffer.from('he'))),
      encodeFrame(AETHER_FRAMES, output(2, Buffer.from('llo'), true)),
    ]);
    const received = collect(host.frames());
    for (const byte of sent) {
      b.write(Uint8Array.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    b.end();
    const { bytes, ended } = joined(await received);
    expect(bytes.toString()).toBe('hello');
    expect(ended).toBe(true);
  });

  it('does not take a connection that fails at its end for one that ended', async () => {
    const failing = new Duplex({
      read() {},
      write: (_chunk, _encoding, done) => done(),
      final: (done) => done(new Error('broken pipe')),
    });
    await expect(channelOn(failing, 'client').end()).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('writes the frames of one turn in one call', async () => {
    const writes: number[] = [];
    const duplex = new Duplex({
      read() {},
      write: (_chunk, _encoding, done) => done(writes.push(1) > 0 ? null : null),
      writev: (chunks, done) => {
        writes.push(chunks.length);
        done();
      },
    });
    const host = channelOn(duplex, 'client');
    for (let i = 0; i < 100; i += 1) void host.send(ping(i));
    await host.end();
    expect(writes).toEqual([100]);
  });

  it('makes a sender wait for a slow reader, and holds a bounded number of bytes', async () => {
    const { host, agent, b } = await pair({ sendBytesMax: 256 * KIB, receiveBytesMax: 256 * KIB });
    const data = Buffer.alloc(FRAME_DATA_BYTES_MAX);
    const total = 400;
    let sent = 0;
    const sending = (async () => {
      for (; sent < total; sent += 1) await agent.send(output(sent * data.length, data));
      await agent.end();
    })();
    const stuckAt = await settled(() => sent);
    expect(stuckAt).toBeLessThan(40);
    expect(agent.sendBytes).toBeLessThan(256 * KIB + 2 * FRAME_DATA_BYTES_MAX);
    expect(b.writableLength).toBeLessThan(256 * KIB + 2 * FRAME_DATA_BYTES_MAX);
    const frames = await collect(host.frames());
    await sending;
    expect(joined(frames).bytes.length).toBe(total * data.length);
  });

  it('gives up a waiting send when its deadline passes, and only that one', async () => {
    const { host, agent } = await pair({ sendBytesMax: 64 * KIB, receiveBytesMax: 64 * KIB });
    const data = Buffer.alloc(FRAME_DATA_BYTES_MAX);
    let sent = 0;
    let last: Promise<void> = Promise.resolve();
    const deadline = startDeadline(200);
    for (; ; sent += 1) {
      last = agent.send(output(sent * data.length, data), deadline.signal);
      const outcome = await last.catch((error: DsecError) => error);
      if (outcome instanceof DsecError) {
        expect(outcome.code).toBe('deadline-exceeded');
        break;
      }
    }
    deadline.stop();
    const later = agent.send(output(sent * data.length, data, true));
    const received = collect(host.frames());
    await later;
    await agent.end();
    expect(joined(await received).bytes.length).toBe((sent + 1) * data.length);
  });

  it('refuses sends beyond those that may wait', async () => {
    const { agent } = await pair({ sendBytesMax: 1, sendersMax: 2 });
    const sends = [0, 1, 2, 3].map((offset) => agent.send(ping(offset)));
    await expect(sends[3]).rejects.toMatchObject({ code: 'overloaded' });
    await Promise.all(sends.slice(0, 3));
  });

  it('bounds what a flood of tiny frames can pile up', async () => {
    const [a, b] = await socketPair();
    const host = channelOn(a, 'client', { receiveFramesMax: 100 });
    open.push(b);
    const one = encodeFrame(AETHER_FRAMES, output(0, Uint8Array.of(7)));
    const burst = Buffer.concat(Array.from({ length: 2000 }, () => one));
    let accepted = 0;
    let drained = true;
    b.on('drain', () => {
      drained = true;
    });
    const flood = setInterval(() => {
      while (drained && accepted < 4_000_000) {
        drained = b.write(burst);
        accepted += burst.length;
      }
    }, 1);
    const stuckAt = await settled(() => accepted);
    clearInterval(flood);
    expect(stuckAt).toBeLessThan(2_000_000);
    expect(a.readableLength).toBeLessThan(200 * KIB);
    for (let i = 0; i < 5000; i += 1) {
      expect((await host.receive())?.type).toBe('stdout');
    }
  });

  it('slows a peer down that sends more frames than it may', async () => {
    const [a, b] = await socketPair();
    const clock = createManualClock();
    const host = createFramedChannel(a, {
      protocol: AETHER_FRAMES,
      side: 'client',
      clock,
      limits: { receiveFramesPerSecondMax: 1000, receiveFramesMax: 1e6 },
    });
    const agent = channelOn(b, 'server');
    open.push(a);
    let received = 0;
    const reading = (async () => {
      for await (const _ of host.frames()) received += 1;
    })();
    for (let i = 0; i < 40_000; i += 1) void agent.send(ping(i)).catch(() => {});
    const first = await settled(() => received);
    expect(first).toBeLessThan(20_000);
    for (let at = first; at < 40_000; at = await settled(() => received)) clock.advance(100_000);
    expect(received).toBe(40_000);
    await agent.end();
    await reading;
  });

  it('loses only the channel whose peer breaks the protocol', async () => {
    const [a, b] = await socketPair();
    const bad = channelOn(a, 'client');
    const good = await pair();
    open.push(b);
    b.on('error', () => {});
    b.write(encodeFrame(AETHER_FRAMES, ping(1)));
    b.write(Buffer.from('this is not a frame at all'));
    const error = await bad.closed;
    expect(error?.code).toBe('protocol');
    await expect(bad.send(ping(1))).rejects.toMatchObject({ code: 'protocol' });
    const left = await collect(bad.frames()).catch((thrown: DsecError) => thrown.code);
    expect(left).toBe('protocol');
    await until(() => b.destroyed || b.readableEnded);
    await good.host.send(ping(9));
    expect((await good.agent.receive())?.offset).toBe(9);
  });

  it('calls an end inside a frame a violation, and an abrupt end a loss', async () => {
    const first = await socketPair();
    const cut = channelOn(first[0], 'client');
    first[1].end(encodeFrame(AETHER_FRAMES, ping(1)).subarray(0, 10));
    expect((await cut.closed)?.code).toBe('protocol');

    const second = await socketPair();
    const lost = channelOn(second[0], 'client');
    const waiting = lost.receive();
    second[0].destroy();
    await expect(waiting).rejects.toMatchObject({ code: 'unavailable' });
    expect((await lost.closed)?.code).toBe('unavailable');
  });

  it('refuses a frame that breaks a limit and goes on', async () => {
    const { host, agent } = await pair();
    const tooLong = output(0, Buffer.alloc(FRAME_DATA_BYTES_MAX + 1));
    await expect(agent.send(tooLong)).rejects.toBeInstanceOf(DsecError);
    await agent.send(output(0, Buffer.from('x')));
    expect((await host.receive())?.type).toBe('stdout');
  });

  it('closes at once, with its error for everybody who waits', async () => {
    const { host, agent } = await pair();
    const waiting = host.receive();
    host.close(new DsecError('agent-lost', 'gone'));
    await expect(waiting).rejects.toMatchObject({ code: 'agent-lost' });
    await expect(host.send(ping(1))).rejects.toMatchObject({ code: 'agent-lost' });
    expect((await host.closed)?.code).toBe('agent-lost');
    expect(await agent.receive()).toBeUndefined();
  });

  it('gives up a waiting receive by its signal, and the next one works', async () => {
    const { host, agent } = await pair();
    const abort = new AbortController();
    const waiting = host.receive(abort.signal);
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'cancelled' });
    await agent.send(output(0, Buffer.from('x')));
    expect((await host.receive())?.type).toBe('stdout');
  });
});
