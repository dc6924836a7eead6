/**
 * The WebSocket of an attached command. Binary messages are bytes of a channel: u8 channel (0 stdin, 1
 * stdout, 2 stderr), u64 absolute offset, little-endian, then the bytes, at most 64 KiB. Text messages are
 * one JSON object of the shapes below.
 *
 * The server sends output from the offset asked for, never more than `ATTACH_WINDOW_BYTES` beyond what the
 * client has acknowledged for that channel; output that is no longer kept is announced as `gap`. A client
 * that comes back attaches at the offsets it has. stdin works the other way round: the server acknowledges
 * what the command's sandbox has taken, and a client that comes back sends again from the offset in
 * `attached`.
 */
import { assert, DsecError, KIB } from '@dsec/std';
import Type, { type Static } from 'typebox';
import { byteCount, integer, record, words } from '../names.ts';
import { ErrorBody } from './error-body.ts';
import { Exec, SignalScope } from './exec.ts';

export const ATTACH_WINDOW_BYTES = 1024 * KIB;
export const ATTACH_DATA_BYTES_MAX = 64 * KIB;
const HEADER_BYTES = 9;
const CHANNELS = ['stdin', 'stdout', 'stderr'] as const;

const outputChannel = words('OutputChannel', ['stdout', 'stderr']);

export const AttachClientMessage = Type.Union(
  [
    record('AttachAck', { type: Type.Literal('ack'), channel: outputChannel, offset: byteCount() }),
    record('AttachStdinEnd', { type: Type.Literal('stdin-end'), offset: byteCount() }),
    record('AttachResize', {
      type: Type.Literal('resize'),
      rows: integer(1, 65_535),
      columns: integer(1, 65_535),
    }),
    record('AttachSignal', {
      type: Type.Literal('signal'),
      signal: integer(1, 64),
      scope: SignalScope,
    }),
  ],
  { title: 'AttachClientMessage' },
);
export type AttachClientMessage = Static<typeof AttachClientMessage>;

export const AttachServerMessage = Type.Union(
  [
    record('AttachAttached', {
      type: Type.Literal('attached'),
      exec: Exec,
      stdinOffset: byteCount('Bytes of stdin taken so far.'),
    }),
    record('AttachStdinAck', { type: Type.Literal('stdin-ack'), offset: byteCount() }),
    record('AttachGap', {
      type: Type.Literal('gap'),
      channel: outputChannel,
      offset: byteCount('First byte that is lost.'),
      nextOffset: byteCount('First byte after the gap.'),
    }),
    record('AttachEnd', { type: Type.Literal('end'), channel: outputChannel, offset: byteCount() }),
    /** Comes after both ends; then the server closes with 1000. */
    record('AttachExit', { type: Type.Literal('exit'), exec: Exec }),
    /** Then the server closes with 1011. */
    record('AttachError', { type: Type.Literal('error'), error: ErrorBody }),
  ],
  { title: 'AttachServerMessage' },
);
export type AttachServerMessage = Static<typeof AttachServerMessage>;

export const AttachQuery = record('AttachQuery', {
  stdoutOffset: Type.Optional(byteCount('First byte wanted; absent: 0.')),
  stderrOffset: Type.Optional(byteCount('First byte wanted; absent: 0.')),
});

export interface AttachData {
  readonly channel: (typeof CHANNELS)[number];
  readonly offset: number;
  readonly data: Uint8Array;
}

/** The header of a binary message; the bytes follow it. */
export function encodeAttachData({ channel, offset, data }: AttachData): Uint8Array {
  assert(data.byteLength <= ATTACH_DATA_BYTES_MAX, 'attach: a message is too long');
  const output = Buffer.allocUnsafe(HEADER_BYTES + data.byteLength);
  output.writeUInt8(CHANNELS.indexOf(channel), 0);
  output.writeBigUInt64LE(BigInt(offset), 1);
  output.set(data, HEADER_BYTES);
  return output;
}

/** The reverse; `data` is a view. Throws `protocol`. */
export function decodeAttachData(message: Uint8Array): AttachData {
  const input = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  if (input.length < HEADER_BYTES || input.length > HEADER_BYTES + ATTACH_DATA_BYTES_MAX) {
    throw new DsecError('protocol', `attach: a message of ${input.length} bytes`);
  }
  const channel = CHANNELS[input.readUInt8(0)];
  const offset = Number(input.readBigUInt64LE(1));
  if (channel === undefined || !Number.isSafeInteger(offset)) {
    throw new DsecError('protocol', 'attach: the header of a message is out of range');
  }
  return { channel, offset, data: input.subarray(HEADER_BYTES) };
}
