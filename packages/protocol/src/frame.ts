/**
 * Frames, version 1: what aether and the launcher speak on a byte stream. A header of 24 bytes,
 * little-endian:
 *
 *     0  u32  length of the payload
 *     4  u8   version of the framing
 *     5  u8   type
 *     6  u16  flags; bit 0 (END) says that a data frame is the last of its channel; all others are 0
 *     8  u32  stream: 0 is the connection itself; others are chosen by the client, one for each request
 *     12 u32  epoch of the client; a receiver drops a client of an older epoch
 *     16 u64  offset: of the first byte in its channel for a data frame, the acknowledged or granted
 *             offset for `ack` and `credit`, a sequence number of the sender otherwise; at most 2^53-1
 *
 * The client is the side that says hello: the host towards aether, the edge towards the launcher. A frame
 * type fixes its direction, whether it belongs to a stream, and the longest payload, so a receiver refuses
 * a bad frame by its header and never waits for, or stores, more than one permitted payload.
 */
import { assert, DsecError, KIB } from '@dsec/std';
import { encodeMessageAfter } from './message-codec.ts';
import type { MessageValue, WireMessage } from './wire-fields.ts';

export const FRAME_VERSION = 1;
export const FRAME_HEADER_BYTES = 24;
/** No frame of any type has a longer payload. */
export const FRAME_PAYLOAD_BYTES_MAX = 256 * KIB;
/** Most bytes of one data frame: small enough that others on the connection do not wait long behind it. */
export const FRAME_DATA_BYTES_MAX = 64 * KIB;
export const FRAME_FLAG_END = 1;

export type FrameSide = 'client' | 'server';

export interface FrameDefinition {
  readonly code: number;
  readonly from: FrameSide | 'both';
  /** `connection` frames have stream 0, `stream` frames another; `any` may have either. */
  readonly scope: 'connection' | 'stream' | 'any';
  /** The fields of a control frame; a frame without carries data. */
  readonly message: WireMessage | undefined;
}

export type FrameDefinitions = Readonly<Record<string, FrameDefinition>>;

export interface FrameProtocol<D extends FrameDefinitions = FrameDefinitions> {
  readonly name: string;
  readonly frames: D;
}

interface Envelope<Type> {
  readonly type: Type;
  readonly stream: number;
  readonly epoch: number;
  readonly offset: number;
}

/** A frame of a protocol: `fields` for a control frame, `data` and `end` for a data frame. */
export type FrameOf<P> =
  P extends FrameProtocol<infer D>
    ? {
        [N in keyof D & string]: D[N]['message'] extends WireMessage
          ? Envelope<N> & { readonly fields: MessageValue<D[N]['message']> }
          : Envelope<N> & { readonly data: Uint8Array; readonly end: boolean };
      }[keyof D & string]
    : never;

/** The shape that all frames share, for code that works on any protocol. */
export interface AnyFrame extends Envelope<string> {
  readonly fields?: unknown;
  readonly data?: Uint8Array;
  readonly end?: boolean;
}

export function control<const M extends WireMessage>(
  code: number,
  from: FrameDefinition['from'],
  scope: FrameDefinition['scope'],
  message: M,
) {
  return { code, from, scope, message } as const;
}

export function data(code: number, from: FrameDefinition['from']) {
  return { code, from, scope: 'stream', message: undefined } as const;
}

export function defineFrameProtocol<const D extends FrameDefinitions>(
  name: string,
  frames: D,
): FrameProtocol<D> {
  const codes = Object.values(frames).map((frame) => frame.code);
  assert(new Set(codes).size === codes.length, `${name}: a frame code is used twice`);
  assert(
    codes.every((code) => Number.isInteger(code) && code > 0 && code <= 0xff),
    `${name}: frame codes are 1 to 255`,
  );
  return { name, frames };
}

/** Longest payload that a frame of this type may have. */
export function payloadBytesMax(definition: FrameDefinition): number {
  if (definition.message === undefined) return FRAME_DATA_BYTES_MAX;
  return Math.min(definition.message.bytesMax, FRAME_PAYLOAD_BYTES_MAX);
}

/**
 * Encodes one frame. Data is copied once; a sender that can write two buffers at a time avoids that with
 * `encodeDataHeader`. Throws `invalid-argument` when a field or the whole breaks a limit.
 */
export function encodeFrame<P extends FrameProtocol>(protocol: P, frame: FrameOf<P>): Uint8Array {
  const { type, stream, epoch, offset, fields, data, end } = frame as AnyFrame;
  const definition = definitionOf(protocol, type);
  checkStream(type, definition, stream);
  if (definition.message === undefined) {
    const payload = checkData(type, data, end);
    const output = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.byteLength);
    writeHeader(output, definition.code, end === true, { stream, epoch, offset });
    output.set(payload, FRAME_HEADER_BYTES);
    return output;
  }
  const value = (fields ?? {}) as Record<string, unknown>;
  const output = encodeMessageAfter(FRAME_HEADER_BYTES, definition.message, value) as Buffer;
  if (output.length - FRAME_HEADER_BYTES > payloadBytesMax(definition)) {
    throw new DsecError('invalid-argument', `${type}: longer than ${payloadBytesMax(definition)}`);
  }
  writeHeader(output, definition.code, false, { stream, epoch, offset });
  return output;
}

/** The header alone of a data frame, to be written before its data. */
export function encodeDataHeader<P extends FrameProtocol>(
  protocol: P,
  frame: FrameOf<P> & { readonly data: Uint8Array },
): Uint8Array {
  const { type, stream, epoch, offset, data, end } = frame as AnyFrame;
  const definition = definitionOf(protocol, type);
  assert(definition.message === undefined, `${type} is not a data frame`);
  checkStream(type, definition, stream);
  const payload = checkData(type, data, end);
  const output = Buffer.allocUnsafe(FRAME_HEADER_BYTES);
  writeHeader(output, definition.code, end === true, { stream, epoch, offset });
  output.writeUInt32LE(payload.byteLength, 0);
  return output;
}

function definitionOf(protocol: FrameProtocol, type: string): FrameDefinition {
  const definition = protocol.frames[type];
  assert(definition !== undefined, `${protocol.name} has no frame ${type}`);
  return definition;
}

function checkData(type: string, data: Uint8Array | undefined, end: boolean | undefined) {
  assert(data !== undefined && data.byteLength <= FRAME_DATA_BYTES_MAX, `${type}: data too long`);
  assert(data.byteLength > 0 || end === true, `${type}: only a last data frame may be empty`);
  return data;
}

function checkStream(type: string, definition: FrameDefinition, stream: number): void {
  assert(streamFits(definition, stream), `${type}: stream ${stream} does not fit`);
}

export function streamFits(definition: FrameDefinition, stream: number): boolean {
  if (definition.scope === 'any') return true;
  return (stream === 0) === (definition.scope === 'connection');
}

interface Position {
  readonly stream: number;
  readonly epoch: number;
  readonly offset: number;
}

/** `output` is the whole frame, or the header alone whose length the caller sets afterwards. */
function writeHeader(output: Buffer, code: number, end: boolean, position: Position): void {
  const { stream, epoch, offset } = position;
  assert(Number.isSafeInteger(offset) && offset >= 0, `frame offset ${offset} is out of range`);
  output.writeUInt32LE(output.length - FRAME_HEADER_BYTES, 0);
  output.writeUInt8(FRAME_VERSION, 4);
  output.writeUInt8(code, 5);
  output.writeUInt16LE(end ? FRAME_FLAG_END : 0, 6);
  output.writeUInt32LE(stream, 8);
  output.writeUInt32LE(epoch, 12);
  output.writeUInt32LE(offset % 2 ** 32, 16);
  output.writeUInt32LE(Math.floor(offset / 2 ** 32), 20);
}
