import type { AetherFrame, Channel } from '@dsec/protocol';
import { FRAME_DATA_BYTES_MAX } from '@dsec/protocol';
import { DsecError, type ErrorCode, type ErrorTopic, isErrorCode } from '@dsec/std';
import {
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
import { createStreamInbox } from './stream-inbox.ts';

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
  const about = topicOf(code, fields.message);
  const details = {
    ...(fields.errnoValue === undefined ? {} : { errno: fields.errnoValue }),
    ...(about === undefined ? {} : { about }),
  };
  return new DsecError(code, fields.message, { details });
}

/** By the first words, in which an agent names the step that failed. */
const TOPICS: readonly (readonly [RegExp, ErrorTopic])[] = [
  [/^no such user or group\b/, 'user'],
  [/^(the )?working directory\b/, 'working-directory'],
  [/^(the )?command\b/, 'command'],
];

function topicOf(code: ErrorCode, message: string): ErrorTopic | undefined {
  if (code === 'command-not-found') return 'command';
  return TOPICS.find(([words]) => words.test(message))?.[1];
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
    end: (offset = credit.offset) => put(offset, new Uint8Array(0), true),
    grant: (upTo: number) => credit.grant(upTo),
    fail: (error: DsecError) => credit.fail(error),
  };
}
