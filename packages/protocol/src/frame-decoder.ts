import { asDsecError, DsecError } from '@dsec/std';
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
  const partial = createPartialFrame(byCode, options.splitData === true);
  let failure: DsecError | undefined;

  function decode(chunk: Buffer): AnyFrame[] {
    const frames: AnyFrame[] = [];
    let at = 0;
    while (at < chunk.length) {
      const whole = partial.bytes === 0 ? wholeFrame(byCode, chunk, at) : undefined;
      const { frame, bytes } = whole ?? partial.take(chunk, at);
      if (frame !== undefined) frames.push(frame);
      at += bytes;
    }
    return frames;
  }

  function guard<T>(step: () => T): T {
    if (failure !== undefined) throw failure;
    try {
      return step();
    } catch (error) {
      failure = asDsecError(error);
      partial.drop();
      throw failure;
    }
  }

  return {
    push: (chunk) =>
      guard(() => {
        const input = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        return decode(input) as FrameOf<P>[];
      }),
    end: () =>
      guard(() => {
        if (partial.bytes > 0) throw broken('the stream ended inside a frame');
      }),
    get bufferedBytes() {
      return partial.bytes;
    },
  };
}

/** What was taken from a chunk, and the frame that it completed. */
interface Taken {
  readonly frame: AnyFrame | undefined;
  readonly bytes: number;
}

/** The frame at this place, if the chunk holds all of it. */
function wholeFrame(byCode: Accepted, chunk: Buffer, at: number): Taken | undefined {
  if (chunk.length - at < FRAME_HEADER_BYTES) return undefined;
  const header = readHeader(byCode, chunk, at);
  const bytes = FRAME_HEADER_BYTES + header.length;
  if (bytes > chunk.length - at) return undefined;
  const payload = chunk.subarray(at + FRAME_HEADER_BYTES, at + bytes);
  return { frame: readFrame(header, payload), bytes };
}

/**
 * The beginning of a frame of which more is to come: first its header, then its payload as far as
 * it came.
 */
function createPartialFrame(byCode: Accepted, splitData: boolean) {
  const head = Buffer.alloc(FRAME_HEADER_BYTES);
  let headUsed = 0;
  let header: Header | undefined;
  let payload: Buffer | undefined;
  let payloadUsed = 0;

  function drop(): void {
    headUsed = 0;
    header = undefined;
    payload = undefined;
    payloadUsed = 0;
  }

  function takeHeader(chunk: Buffer, at: number): Taken {
    const bytes = chunk.copy(head, headUsed, at);
    headUsed += bytes;
    if (headUsed < FRAME_HEADER_BYTES) return { frame: undefined, bytes };
    const read = readHeader(byCode, head, 0);
    if (read.length > 0) {
      header = read;
      return { frame: undefined, bytes };
    }
    drop();
    return { frame: readFrame(read, Buffer.alloc(0)), bytes };
  }

  function takePayload(current: Header, chunk: Buffer, at: number): Taken {
    payload ??= Buffer.allocUnsafeSlow(current.length);
    const bytes = chunk.copy(payload, payloadUsed, at);
    payloadUsed += bytes;
    if (payloadUsed < current.length) return { frame: undefined, bytes };
    const frame = readFrame(current, payload);
    drop();
    return { frame, bytes };
  }

  /** What the chunk has of a data frame, as a frame of its own. */
  function takePiece(current: Header, chunk: Buffer, at: number): Taken {
    const bytes = Math.min(current.length - payloadUsed, chunk.length - at);
    const offset = current.offset + payloadUsed;
    payloadUsed += bytes;
    const isLast = payloadUsed === current.length;
    if (isLast) drop();
    const piece = { ...current, offset, end: current.end && isLast };
    return { frame: readFrame(piece, chunk.subarray(at, at + bytes)), bytes };
  }

  return {
    drop,
    take(chunk: Buffer, at: number): Taken {
      if (header === undefined) return takeHeader(chunk, at);
      const isData = header.named.definition.message === undefined;
      return splitData && isData ? takePiece(header, chunk, at) : takePayload(header, chunk, at);
    },
    get bytes() {
      return headUsed + (payload?.length ?? 0);
    },
  };
}

/** By their codes, the frames that may come from the side that is decoded. */
type Accepted = readonly (NamedDefinition | undefined)[];

const acceptedOf = new WeakMap<FrameProtocol, Partial<Record<FrameSide, Accepted>>>();

/** Made once for each protocol and side, as there is a decoder for each connection. */
function acceptedFrames(protocol: FrameProtocol, options: FrameDecoderOptions): Accepted {
  if (options.payloadBytesMax !== undefined) return findAccepted(protocol, options);
  const known = acceptedOf.get(protocol) ?? {};
  acceptedOf.set(protocol, known);
  known[options.from] ??= findAccepted(protocol, options);
  return known[options.from] as Accepted;
}

function findAccepted(protocol: FrameProtocol, options: FrameDecoderOptions): Accepted {
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

function readHeader(byCode: Accepted, input: Buffer, at: number): Header {
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
