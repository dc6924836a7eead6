import type { AetherFrame, Channel } from '@dsec/protocol';
import { FRAME_DATA_BYTES_MAX } from '@dsec/protocol';
import { assert, DsecError, type ErrorCode, isErrorCode, KIB } from '@dsec/std';
import {
  abortError,
  createReceiveCredit,
  createSendCredit,
  type ReceiveCredit,
  type SendCredit,
} from '@dsec/transport';
import {
  type AgentFields,
  type AgentLimits,
  type AgentStream,
  type HostFrameType,
  type SinkStream,
  STREAM_WINDOW_BYTES,
  type StreamFrame,
  type StreamOptions,
  type StreamSink,
} from './agent-link.ts';

/** What a stream needs of its link. */
export interface StreamHost {
  send(frame: object, signal?: AbortSignal): Promise<void>;
  /** Frees the number. */
  leave(number: number): void;
}

/** What a link needs of a stream: it deals with each frame at once and never waits. */
export interface StreamEnd {
  /** Throws `protocol` when the agent may not have sent it. */
  take(frame: AetherFrame): void;
  fail(error: DsecError): void;
}

/** Shorter data is copied when it has to wait, so that a byte never holds the chunk that it came in. */
const COPY_BYTES_MAX = 4 * KIB;
const BLOCK_BYTES = 16 * KIB;

export function createAgentStream(
  number: number,
  host: StreamHost,
  limits: AgentLimits,
  options: StreamOptions,
): { readonly stream: AgentStream; readonly end: StreamEnd } {
  const inbox = createStreamInbox(limits.controlFramesMax);
  const credits = createOutputCredits(options);
  const input = createInput(number, host);
  const send = <T extends HostFrameType>(type: T, fields: AgentFields<T>, offset = 0) =>
    host.send({ type, stream: number, offset, fields });
  /** Lost with the link, which then ends the stream as well. */
  const tell = (type: 'ack' | 'credit', channel: Channel, offset: number) =>
    void send(type, { channel }, offset).catch(() => {});

  const taken = (frame: StreamFrame): StreamFrame => {
    if (frame.type !== 'stdout' && frame.type !== 'stderr') return frame;
    const grant = credits[frame.type].release(frame.data.byteLength);
    if (options.acknowledge) tell('ack', frame.type, frame.offset + frame.data.byteLength);
    if (grant !== undefined) tell('credit', frame.type, grant);
    return frame;
  };

  const stream: AgentStream = {
    number,
    send,
    receive: async (signal) => taken(await inbox.take(signal)),
    openInput: input.open,
    write: input.write,
    endInput: input.end,
    get inputOffset() {
      return input.offset;
    },
    leave(how) {
      host.leave(number);
      inbox.end(new DsecError('cancelled', 'the stream was left'));
      input.fail(new DsecError('cancelled', 'the stream was left'));
      if (how?.cancel) void send('cancel', {}).catch(() => {});
    },
  };
  const fail = (error: DsecError) => {
    host.leave(number);
    inbox.end(error);
    input.fail(error);
  };
  const end: StreamEnd = {
    take(frame) {
      if (frame.type === 'error') fail(errorOfAgent(frame.fields));
      else if (frame.type === 'credit') input.grant(inputGrant(frame));
      else if (frame.type === 'stdout' || frame.type === 'stderr') {
        credits[frame.type].receive(frame.offset, frame.data.byteLength);
        inbox.pushData(frame);
      } else if (frame.type !== 'ack') inbox.push(frame);
    },
    fail,
  };
  return { stream, end };
}

export function createSinkStream(
  number: number,
  host: StreamHost,
  sink: StreamSink,
): { readonly stream: SinkStream; readonly end: StreamEnd } {
  const stream: SinkStream = {
    number,
    send: (type, fields, offset = 0) => host.send({ type, stream: number, offset, fields }),
    writeAt: (offset, data, end) => host.send({ type: 'stdin', stream: number, offset, data, end }),
    leave(how) {
      host.leave(number);
      if (how?.cancel) void stream.send('cancel', {}).catch(() => {});
    },
  };
  const end: StreamEnd = {
    take(frame) {
      if (frame.type === 'error') {
        host.leave(number);
        sink.failed(errorOfAgent(frame.fields), true);
      } else if (frame.type === 'credit') sink.inputCredit(inputGrant(frame));
      else if (frame.type !== 'ack') sink.frame(frame);
    },
    fail(error) {
      host.leave(number);
      sink.failed(error, false);
    },
  };
  return { stream, end };
}

/** The error that an agent answered. A code that does not exist, or is the link's own, is a violation. */
export function errorOfAgent(fields: AgentFields<'error'>): DsecError {
  if (!isErrorCode(fields.code)) throw new DsecError('protocol', 'an error without a known code');
  const code: ErrorCode = fields.code;
  const details = fields.errnoValue === undefined ? {} : { errno: fields.errnoValue };
  return new DsecError(code, fields.message, { details });
}

function inputGrant(frame: AetherFrame & { type: 'credit' }): number {
  if (frame.fields.channel === 'stdin') return frame.offset;
  throw new DsecError('protocol', `an agent gives no credit for ${frame.fields.channel}`);
}

function createOutputCredits(options: StreamOptions): Record<'stdout' | 'stderr', ReceiveCredit> {
  const { offsets = { stdout: 0, stderr: 0 }, windowBytes = STREAM_WINDOW_BYTES } = options;
  return {
    stdout: createReceiveCredit(offsets.stdout, windowBytes),
    stderr: createReceiveCredit(offsets.stderr, windowBytes),
  };
}

/** The bytes that go in: credit, offset, one writer at a time. */
function createInput(number: number, host: StreamHost) {
  let credit: SendCredit = createSendCredit(0, STREAM_WINDOW_BYTES);
  const put = (offset: number, data: Uint8Array, end: boolean) =>
    host.send({ type: 'stdin', stream: number, offset, data, end });
  return {
    get offset() {
      return credit.offset;
    },
    open(offset: number, upTo: number) {
      credit = createSendCredit(offset, upTo);
    },
    async write(data: Uint8Array, signal?: AbortSignal) {
      for (let at = 0; at < data.byteLength; ) {
        const offset = credit.offset;
        const most = Math.min(data.byteLength - at, FRAME_DATA_BYTES_MAX);
        const bytes = await credit.take(most, signal);
        await put(offset, data.subarray(at, at + bytes), false);
        at += bytes;
      }
    },
    end: () => put(credit.offset, new Uint8Array(0), true),
    grant: (upTo: number) => credit.grant(upTo),
    fail: (error: DsecError) => credit.fail(error),
  };
}

type DataFrame = StreamFrame & { type: 'stdout' | 'stderr' };

interface Waiting {
  readonly frame: StreamFrame;
  /** Small data is gathered here, in front of which `frame` says where it belongs. */
  readonly block?: Buffer;
  used: number;
  end: boolean;
}

/**
 * Frames that wait for the reader of one stream. Data is bounded by its credit and kept without the chunks
 * that it came in; other frames are counted.
 */
function createStreamInbox(controlsMax: number) {
  const waiting: Waiting[] = [];
  let controls = 0;
  /** The last of each channel, while more may be gathered there. */
  let blocks: { stdout?: Waiting; stderr?: Waiting } = {};
  let failure: DsecError | undefined;
  let wake: (() => void) | undefined;
  let isTaking = false;

  const add = (item: Waiting) => {
    waiting.push(item);
    wake?.();
  };
  const gather = (frame: DataFrame) => {
    const open = blocks[frame.type];
    if (open?.block !== undefined && open.used + frame.data.byteLength <= BLOCK_BYTES) {
      open.block.set(frame.data, open.used);
      open.used += frame.data.byteLength;
      open.end = frame.end;
      return;
    }
    const block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    block.set(frame.data);
    const item = { frame, block, used: frame.data.byteLength, end: frame.end };
    blocks[frame.type] = item;
    add(item);
  };
  const next = (): StreamFrame | undefined => {
    const item = waiting.shift();
    if (item === undefined) return undefined;
    const { frame, block, used, end } = item;
    if (frame.type !== 'stdout' && frame.type !== 'stderr') {
      controls -= 1;
      return frame;
    }
    if (blocks[frame.type] === item) delete blocks[frame.type];
    return block === undefined ? frame : { ...frame, data: block.subarray(0, used), end };
  };

  return {
    push(frame: StreamFrame) {
      if (failure !== undefined) return;
      controls += 1;
      if (controls > controlsMax) {
        throw new DsecError('protocol', `${controlsMax} frames wait on a stream already`);
      }
      blocks = {};
      add({ frame, used: 0, end: false });
    },
    pushData(frame: DataFrame) {
      if (failure !== undefined) return;
      const isSmall = frame.data.byteLength < COPY_BYTES_MAX;
      if (isSmall && (wake === undefined || waiting.length > 0)) return gather(frame);
      delete blocks[frame.type];
      add({ frame, used: 0, end: false });
    },
    end(error: DsecError) {
      failure ??= error;
      wake?.();
    },
    async take(signal?: AbortSignal): Promise<StreamFrame> {
      assert(!isTaking, 'a stream has one taker at a time');
      isTaking = true;
      try {
        for (let frame = next(); ; frame = next()) {
          if (frame !== undefined) return frame;
          if (failure !== undefined) throw failure;
          if (signal?.aborted) throw abortError(signal);
          await new Promise<void>((resolve) => {
            const settle = () => {
              signal?.removeEventListener('abort', settle);
              wake = undefined;
              resolve();
            };
            signal?.addEventListener('abort', settle, { once: true });
            wake = settle;
          });
        }
      } finally {
        isTaking = false;
      }
    },
  };
}
