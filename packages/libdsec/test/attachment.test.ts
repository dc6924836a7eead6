import { createHash } from 'node:crypto';
import { type AttachClientMessage, encodeAttachData } from '@dsec/protocol';
import { DsecError as CodedError, createSeededRandom, MIB } from '@dsec/std';
import type { WebSocketChannel } from '@dsec/transport';
import { describe, expect, it } from 'vitest';
import { followCommand, type OutputChunk } from '../src/attachment.ts';
import { OutputLostError, ProtocolError, StateConflictError } from '../src/index.ts';
import {
  EXEC_ID,
  execInfo,
  type FakeHandlers,
  listed,
  PLACE,
  serverOf,
} from './support/fake-server.ts';

type Attach = NonNullable<FakeHandlers['attachExec']>;

const PIECE = 64 * 1024;
const say = (channel: WebSocketChannel, message: object) => channel.send(JSON.stringify(message));
const attached = (channel: WebSocketChannel) =>
  say(channel, { type: 'attached', exec: execInfo({}, { state: 'running' }), stdinOffset: 0 });
const exited = (channel: WebSocketChannel) => say(channel, { type: 'exit', exec: execInfo() });

/** Sends output from an offset on, keeping within the window as an edge does. */
async function sendWithin(
  channel: WebSocketChannel,
  bytes: Uint8Array,
  from: number,
  onAck: (ahead: number) => void = () => {},
) {
  let acked = from;
  for (let offset = from; offset < bytes.length; offset += PIECE) {
    const data = bytes.subarray(offset, offset + PIECE);
    while (offset + data.length - acked > MIB) {
      const message = JSON.parse(String(await channel.receive())) as AttachClientMessage;
      if (message.type !== 'ack') throw new Error('not an ack');
      acked = message.offset;
      onAck(offset - acked);
    }
    await channel.send(encodeAttachData({ channel: 'stdout', offset, data }));
  }
}

async function follow(attachExec: Attach, options = {}) {
  const server = await serverOf({ attachExec }, 3000);
  return followCommand(server, PLACE, options, () => {});
}

const bytesIn = (chunks: readonly OutputChunk[], stream = 'stdout') =>
  Buffer.concat(chunks.filter((chunk) => chunk.stream === stream).map(({ data }) => data));
const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

describe('followCommand', () => {
  it('yields both outputs to the end, and tells what the command is and became', async () => {
    const states: string[] = [];
    const server = await serverOf({
      async attachExec({ query }, _, channel) {
        expect(query).toEqual({ stdoutOffset: 0, stderrOffset: 0 });
        await attached(channel);
        const piece = (name: 'stdout' | 'stderr', offset: number, text: string) =>
          channel.send(encodeAttachData({ channel: name, offset, data: Buffer.from(text) }));
        await piece('stdout', 0, 'one ');
        await piece('stderr', 0, 'error');
        await piece('stdout', 4, 'two');
        await say(channel, { type: 'end', channel: 'stdout', offset: 7 });
        await exited(channel);
      },
    });
    const found = await listed(
      followCommand(server, PLACE, {}, ({ state }) => void states.push(state)),
    );
    expect(bytesIn(found).toString()).toBe('one two');
    expect(bytesIn(found, 'stderr').toString()).toBe('error');
    expect(found.map(({ offset }) => offset)).toEqual([0, 0, 4]);
    expect(states).toEqual(['running', 'exited']);
  });

  it('acknowledges what was taken, so that the sender is never held up and never far ahead', async () => {
    const bytes = Buffer.from(createSeededRandom(7).bytes(5 * MIB));
    let acks = 0;
    const found = await listed(
      await follow(async (_, __, channel) => {
        await attached(channel);
        await sendWithin(channel, bytes, 0, () => {
          acks += 1;
        });
        await exited(channel);
      }),
    );
    expect(digestOf(bytesIn(found))).toBe(digestOf(bytes));
    expect(acks).toBeGreaterThan(10);
  });

  it('goes on at the offsets that it has when a connection is lost', async () => {
    const bytes = Buffer.from(createSeededRandom(8).bytes(3 * MIB));
    const begins: (number | undefined)[] = [];
    const found = await listed(
      await follow(async ({ query: { stdoutOffset = 0 } }, _, channel) => {
        begins.push(stdoutOffset);
        await attached(channel);
        const isLast = begins.length === 4;
        await sendWithin(
          channel,
          isLast ? bytes : bytes.subarray(0, stdoutOffset + MIB / 2),
          stdoutOffset,
        );
        if (isLast) await exited(channel);
        else throw new CodedError('unavailable', 'gone');
      }),
    );
    expect(digestOf(bytesIn(found))).toBe(digestOf(bytes));
    expect(begins.length).toBe(4);
    expect(begins[1]).toBeGreaterThan(0);
  });

  it('begins where it is told to', async () => {
    const bytes = Buffer.from('0123456789');
    const found = await listed(
      await follow(
        async ({ query }, _, channel) => {
          expect(query).toEqual({ stdoutOffset: 6, stderrOffset: 3 });
          await attached(channel);
          await sendWithin(channel, bytes, 6);
          await exited(channel);
        },
        { stdoutOffset: 6, stderrOffset: 3 },
      ),
    );
    expect(bytesIn(found).toString()).toBe('6789');
  });

  it('says where output is lost, or goes on behind it when that is wanted', async () => {
    const handler: Attach = async (_, __, channel) => {
      await attached(channel);
      await say(channel, { type: 'gap', channel: 'stdout', offset: 0, nextOffset: 100 });
      await sendWithin(channel, Buffer.alloc(103, 'x'), 100);
      await exited(channel);
    };
    const lost = await listed(await follow(handler)).catch((thrown) => thrown);
    expect(lost).toBeInstanceOf(OutputLostError);
    expect(lost.details).toEqual({ stream: 'stdout', offset: 0, nextOffset: 100 });
    const found = await listed(await follow(handler, { skipLost: true }));
    expect(found).toEqual([{ stream: 'stdout', offset: 100, data: Buffer.from('xxx') }]);
  });

  it('fails with what the server tells, with bytes out of place, and when it is given up', async () => {
    const error = { code: 'state-conflict', message: 'ended', retryable: false, remedy: 'x' };
    const told = follow(async (_, __, channel) => {
      await say(channel, { type: 'error', error: { ...error, details: {} } });
    });
    await expect(listed(await told)).rejects.toBeInstanceOf(StateConflictError);
    const skipping = follow(async (_, __, channel) => {
      await channel.send(encodeAttachData({ channel: 'stdout', offset: 1, data: Buffer.of(1) }));
    });
    await expect(listed(await skipping)).rejects.toBeInstanceOf(ProtocolError);
    const silent: Attach = async (_, call, channel) => {
      await attached(channel);
      await new Promise((resolve) => call.signal.addEventListener('abort', resolve));
    };
    const signal = AbortSignal.timeout(100);
    const aborted = listed(await follow(silent, { signal }));
    await expect(aborted).rejects.toMatchObject({ code: 'deadline-exceeded' });
  });

  it('ends with its client', async () => {
    const server = await serverOf({
      async attachExec(_, call, channel) {
        await attached(channel);
        await channel.send(encodeAttachData({ channel: 'stdout', offset: 0, data: Buffer.of(1) }));
        await new Promise((resolve) => call.signal.addEventListener('abort', resolve));
      },
    });
    const chunks = followCommand(server, PLACE, {}, () => {});
    await chunks.next();
    const rest = chunks.next();
    await server.close();
    await expect(rest).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('gives up when no connection gets any further', async () => {
    const server = await serverOf(
      {
        attachExec: async () => {
          throw new Error('gone');
        },
      },
      300,
    );
    const follower = followCommand(server, { ...PLACE, execId: EXEC_ID }, {}, () => {});
    await expect(listed(follower)).rejects.toMatchObject({ code: 'internal' });
  });

  it('ends the connection when the loop is left', async () => {
    let left: Promise<unknown> | undefined;
    const chunks = await follow(async (_, __, channel) => {
      left = channel.closed;
      await attached(channel);
      await sendWithin(channel, Buffer.alloc(2 * MIB), 0).catch(() => {});
    });
    for await (const { data } of chunks) {
      expect(data.byteLength).toBe(PIECE);
      break;
    }
    await left;
  });
});
