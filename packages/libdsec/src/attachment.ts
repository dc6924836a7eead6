/**
 * The output of a command over its WebSocket (attach.ts of the protocol). What was taken is acknowledged, so
 * that never more than a window is on its way; a connection that is lost is made anew at the offsets that
 * were reached.
 */
import {
  ATTACH_WINDOW_BYTES,
  type AttachClientMessage,
  AttachServerMessage,
  check,
  decodeAttachData,
  type Exec,
  ROUTES,
} from '@dsec/protocol';
import { assertNever, fromErrorBody } from '@dsec/std';
import type { WebSocketChannel } from '@dsec/transport/client';
import { clientErrorOf, OutputLostError, ProtocolError, UnavailableError } from './errors.ts';
import type { ExecPlace, OutputName } from './output.ts';
import { createPatience } from './patience.ts';
import type { Server } from './server.ts';

export interface OutputChunk {
  readonly stream: OutputName;
  readonly data: Uint8Array;
  /** Of the first byte, from the beginning of that output. */
  readonly offset: number;
}

export interface FollowOptions {
  /** First byte wanted of each output; absent: 0. */
  readonly stdoutOffset?: number | undefined;
  readonly stderrOffset?: number | undefined;
  /** Go on where output is no longer kept; the offsets tell. Absent: throw `output-lost`. */
  readonly skipLost?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

const ACK_BYTES = ATTACH_WINDOW_BYTES / 4;

interface Follower {
  readonly offsets: Record<OutputName, number>;
  readonly acked: Record<OutputName, number>;
  readonly skipLost: boolean;
  readonly onExec: (exec: Exec) => void;
  hasEnded: boolean;
}

/** Everything that a command writes, to its end. `onExec` is told what the command is, and how it ended. */
export async function* followCommand(
  server: Server,
  place: ExecPlace,
  options: FollowOptions,
  onExec: (exec: Exec) => void,
): AsyncGenerator<OutputChunk> {
  const { stdoutOffset = 0, stderrOffset = 0, skipLost = false, signal } = options;
  const offsets = { stdout: stdoutOffset, stderr: stderrOffset };
  const acked = { ...offsets };
  const follower: Follower = { offsets, acked, skipLost, onExec, hasEnded: false };
  const patience = createPatience(server.timeoutMs);
  while (!follower.hasEnded) {
    let channel: WebSocketChannel | undefined;
    try {
      const from = { stdoutOffset: offsets.stdout, stderrOffset: offsets.stderr };
      channel = await server.connect(ROUTES.attachExec, place, from, { signal });
      patience.opened();
      for await (const chunk of chunksOf(follower, channel, signal)) {
        yield chunk;
        patience.progressed();
      }
    } catch (thrown) {
      await patience.pause(clientErrorOf(thrown), signal);
    } finally {
      await channel?.close();
    }
  }
}

/** Of one connection. Ends when the command has. */
async function* chunksOf(
  follower: Follower,
  channel: WebSocketChannel,
  signal: AbortSignal | undefined,
): AsyncGenerator<OutputChunk> {
  const { offsets, acked } = follower;
  Object.assign(acked, offsets);
  while (!follower.hasEnded) {
    const message = await channel.receive(signal);
    if (message === undefined) {
      throw new UnavailableError('unavailable', 'the connection ended before the command');
    }
    if (typeof message === 'string') {
      takeMessage(follower, parse(message));
      continue;
    }
    const { channel: name, offset, data } = decodeAttachData(message);
    if (name === 'stdin' || offset !== offsets[name]) {
      throw new ProtocolError('protocol', `attach: ${name} at ${offset} was not expected`);
    }
    yield { stream: name, data, offset };
    // Whoever asks for the next piece has taken this one.
    offsets[name] += data.byteLength;
    if (offsets[name] - acked[name] >= ACK_BYTES) {
      acked[name] = offsets[name];
      await tell(channel, { type: 'ack', channel: name, offset: acked[name] }, signal);
    }
  }
}

const tell = (channel: WebSocketChannel, message: AttachClientMessage, signal?: AbortSignal) =>
  channel.send(JSON.stringify(message), signal);

function parse(text: string): AttachServerMessage {
  try {
    return check(AttachServerMessage, JSON.parse(text), 'message');
  } catch (cause) {
    throw new ProtocolError('protocol', 'attach: a message that is none', { cause });
  }
}

function takeMessage(follower: Follower, message: AttachServerMessage): void {
  switch (message.type) {
    case 'attached':
      follower.onExec(message.exec);
      return;
    case 'gap': {
      const { channel, offset, nextOffset } = message;
      if (!follower.skipLost) {
        throw new OutputLostError('output-lost', `${channel} is not kept from ${offset} on`, {
          details: { stream: channel, offset, nextOffset },
        });
      }
      follower.offsets[channel] = nextOffset;
      follower.acked[channel] = nextOffset;
      return;
    }
    case 'exit':
      follower.hasEnded = true;
      follower.onExec(message.exec);
      return;
    case 'error':
      throw fromErrorBody(message.error);
    case 'stdin-ack':
    case 'end':
      return;
    default:
      assertNever(message);
  }
}
