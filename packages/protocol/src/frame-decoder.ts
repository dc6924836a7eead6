import { DsecError } from '@dsec/std';
import {
  type AnyFrame,
  FRAME_FLAG_END,
  FRAME_HEADER_BYTES,
  FRAME_VERSION,
  type FrameDefinition,
  type FrameOf,
  type FrameProtocol,
  type FrameSide,
  payloadBytesMax,
  streamFits,
} from './frame.ts';
import { decodeMessage } from './message-codec.ts';

export interface FrameDecoderOptions {
  /** The side whose bytes are decoded: frames that only the other side may send are refused. */
  readonly from: FrameSide;
  /** A lower limit than the protocol's own for every payload. */
  readonly payloadBytesMax?: number;
  /**
   * Gives the data of a frame that spans chunks piece by piece, each as a data frame with its own offset,
   * instead of copying it together: for a reader of bytes the two are the same, and bulk data is never
   * copied or held.
   */
  readonly splitData?: boolean;
}

export interface FrameDecoder<Frame> {
  /**
   * Takes the next bytes of the stream and returns the frames that are now complete, in order. Data and
   * byte fields are views of `chunk` where a frame lies within it, so the caller must not reuse the chunk.
   * Throws `protocol` at the first violation, and again at every later call: what follows a violation has
   * no meaning, and frames before it in the same chunk are dropped.
   */
  push(chunk: Uint8Array): Frame[];
  /** Throws `protocol` when the stream ended inside a frame. */
  end(): void;
  /** Bytes held for a frame that is not complete; never more than a header and one permitted payload. */
  readonly bufferedBytes: number;
}

interface NamedDefinition {
  readonly name: string;
  readonly definition: FrameDefinition;
  readonly bytesMax: number;
}

interface Header {
  readonly named: NamedDefinition;
  readonly length: number;
  readonly end: boolean;
  readonly stream: number;
  readonly epoch: number;
  readonly offset: number;
}

/** Decodes a stream of frames with bounded memory; see the header layout in `frame.ts`. */
export function createFrameDecoder<P extends FrameProtocol>(
  protocol: P,
  options: FrameDecoderOptions,
): FrameDecoder<FrameOf<P>> {
  const byCode = acceptedFrames(protocol, options);
  /** The beginning of a frame of which more is to come: its header first, then header known and payload. */
  const head = Buffer.alloc(FRAME_HEADER_BYTES);
  let headUsed = 0;
  let header: Header | undefined;
  let payload: Buffer | undefined;
  let payloadUsed = 0;
  let failure: DsecError | undefined;

  /** Completes the held frame from `chunk`. Returns how many bytes it took. */
  function fill(chunk: Buffer, at: number): number {
    if (header === undefined) {
      const taken = chunk.copy(head, headUsed, at);
      headUsed += taken;
      if (headUsed === FRAME_HEADER_BYTES) header = readHeader(byCode, head, 0);
      return taken;
    }
    payload ??= Buffer.allocUnsafeSlow(header.length);
    const taken = chunk.copy(payload, payloadUsed, at);
    payloadUsed += taken;
    return taken;
  }

  function takeHeld(): AnyFrame | undefined {
    if (header === undefined || payloadUsed < header.length) return undefined;
    const frame = readFrame(header, payload ?? Buffer.alloc(0));
    forgetHeld();
    return frame;
  }

  function forgetHeld(): void {
    header = undefined;
    payload = undefined;
    headUsed = 0;
    payloadUsed = 0;
  }

  /** With `splitData`: what `chunk` has of the held data frame, as a frame of its own. */
  function takePiece(chunk: Buffer, at: number) {
    if (options.splitData !== true || header === undefined) return undefined;
    const bytes = Math.min(header.length - payloadUsed, chunk.length - at);
    if (header.named.definition.message !== undefined || bytes === 0) return undefined;
    const { named, stream, epoch } = header;
    const offset = header.offset + payloadUsed;
    const data = chunk.subarray(at, at + bytes);
    payloadUsed += bytes;
    const isLast = payloadUsed === header.length;
    const end = header.end && isLast;
    if (isLast) forgetHeld();
    return { type: named.name, stream, epoch, offset, end, data };
  }

  function decode(chunk: Buffer): AnyFrame[] {
    const frames: AnyFrame[] = [];
    let at = 0;
    while (at < chunk.length) {
      if (headUsed === 0 && chunk.length - at >= FRAME_HEADER_BYTES) {
        const next = readHeader(byCode, chunk, at);
        const end = at + FRAME_HEADER_BYTES + next.length;
        if (end <= chunk.length) {
          frames.push(readFrame(next, chunk.subarray(at + FRAME_HEADER_BYTES, end)));
          at = end;
          continue;
        }
      }
      const piece = takePiece(chunk, at);
      if (piece !== undefined) {
        frames.push(piece);
        at += piece.data.length;
        continue;
      }
      at += fill(chunk, at);
      const frame = takeHeld();
      if (frame !== undefined) frames.push(frame);
    }
    return frames;
  }

  const fail = (error: unknown): never => {
    failure =
      error instanceof DsecError
        ? error
        : new DsecError('internal', 'frame decoder', { cause: error });
    header = undefined;
    payload = undefined;
    throw failure;
  };

  return {
    push(chunk) {
      if (failure !== undefined) throw failure;
      try {
        const input = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        return decode(input) as FrameOf<P>[];
      } catch (error) {
        return fail(error);
      }
    },
    end() {
      if (failure !== undefined) throw failure;
      if (headUsed > 0) fail(new DsecError('protocol', 'the stream ended inside a frame'));
    },
    get bufferedBytes() {
      return headUsed + (payload?.length ?? 0);
    },
  };
}

function acceptedFrames(
  protocol: FrameProtocol,
  options: FrameDecoderOptions,
): readonly (NamedDefinition | undefined)[] {
  const byCode: (NamedDefinition | undefined)[] = new Array(256).fill(undefined);
  for (const [name, definition] of Object.entries(protocol.frames)) {
    if (definition.from !== 'both' && definition.from !== options.from) continue;
    const limit = options.payloadBytesMax ?? Number.POSITIVE_INFINITY;
    byCode[definition.code] = {
      name,
      definition,
      bytesMax: Math.min(payloadBytesMax(definition), limit),
    };
  }
  return byCode;
}

function readHeader(
  byCode: readonly (NamedDefinition | undefined)[],
  input: Buffer,
  at: number,
): Header {
  const length = input.readUInt32LE(at);
  const version = input.readUInt8(at + 4);
  const code = input.readUInt8(at + 5);
  const flags = input.readUInt16LE(at + 6);
  const stream = input.readUInt32LE(at + 8);
  const offsetHigh = input.readUInt32LE(at + 20);
  if (version !== FRAME_VERSION) throw broken(`frame version ${version}`);
  const named = byCode[code];
  if (named === undefined) throw broken(`frame type ${code} is unknown or not for this direction`);
  const { name, definition, bytesMax } = named;
  if (length > bytesMax) throw broken(`${name}: a payload of ${length} bytes`);
  const isData = definition.message === undefined;
  if ((flags & ~(isData ? FRAME_FLAG_END : 0)) !== 0) throw broken(`${name}: flags ${flags}`);
  if (isData && length === 0 && flags === 0) throw broken(`${name}: empty, but not the last`);
  if (!streamFits(definition, stream)) throw broken(`${name}: stream ${stream}`);
  if (offsetHigh >= 2 ** 21) throw broken(`${name}: the offset is out of range`);
  return {
    named,
    length,
    end: (flags & FRAME_FLAG_END) !== 0,
    stream,
    epoch: input.readUInt32LE(at + 12),
    offset: offsetHigh * 2 ** 32 + input.readUInt32LE(at + 16),
  };
}

function readFrame(header: Header, payload: Buffer): AnyFrame {
  const { named, end, stream, epoch, offset } = header;
  const message = named.definition.message;
  const type = named.name;
  if (message === undefined) return { type, stream, epoch, offset, end, data: payload };
  return { type, stream, epoch, offset, fields: decodeMessage(message, payload) };
}

function broken(problem: string): DsecError {
  return new DsecError('protocol', problem);
}
