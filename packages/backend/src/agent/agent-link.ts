/**
 * The host side of aether's frames: one link for each sandbox, many streams on it. What they promise is
 * here; `connect-agent.ts` makes them. The peer is hostile (THREATS C11): everything that it can fill is
 * bounded, and a violation closes its link with `protocol` and harms nobody else.
 */
import type { AetherFrame } from '@dsec/protocol';
import { type DsecError, KIB, SECOND_MS } from '@dsec/std';

type AgentFrameType = AetherFrame['type'];
type FrameNamed<T extends AgentFrameType> = Extract<AetherFrame, { type: T }>;
/** Frames that the host sends on a stream, except data. */
export type HostFrameType =
  | `exec-${'start' | 'attach' | 'exit-ack'}`
  | `session-${'open' | 'close' | 'watch' | 'rules'}`
  | `file-${'read' | 'write' | 'stat' | 'list' | 'mkdir' | 'move' | 'remove'}`
  | ('quiesce' | 'port-open' | 'resize' | 'signal' | 'timeout' | 'cancel' | 'ack' | 'credit');
export type AgentFields<T extends AgentFrameType> =
  FrameNamed<T> extends { readonly fields: infer F } ? F : never;
/** What comes on a stream and is given to its reader: no `error`, and no credit of stdin. */
export type StreamFrame = Exclude<AetherFrame, { type: 'error' | 'credit' }>;

export interface AgentLimits {
  /** The agent has so long to answer a hello. */
  readonly helloMs: number;
  /** Streams open at a time: `overloaded` beyond. Also how many frames may wait to be sent. */
  readonly streamsMax: number;
  /** Control frames that a stream holds for its reader; an agent that sends more breaks the protocol. */
  readonly controlFramesMax: number;
  /** An agent that sends more is read more slowly. */
  readonly framesPerSecondMax: number;
}

export const AGENT_LIMITS: AgentLimits = {
  helloMs: 5 * SECOND_MS,
  streamsMax: 2048,
  controlFramesMax: 64,
  framesPerSecondMax: 100_000,
};

/** Bytes that a stream holds for its reader, for each channel, unless it asks for more. */
export const STREAM_WINDOW_BYTES = 64 * KIB;

export interface StreamOptions {
  /** Where output goes on: what the reader has already. */
  readonly offsets?: { readonly stdout: number; readonly stderr: number };
  /**
   * Most bytes of each channel that are under way or untaken. A command must be started with the same
   * `windowBytes`; files and ports begin with `STREAM_WINDOW_BYTES`, the default, and cannot have less.
   */
  readonly windowBytes?: number;
  /** True for a command: what is taken is acknowledged, not only credited. */
  readonly acknowledge?: boolean;
}

/** A request and what belongs to it. Its reader may be slow: it holds up itself, never another stream. */
export interface AgentStream {
  readonly number: number;
  /** Sends a control frame after those before it. Rejects when the link has closed, or as `overloaded`. */
  send<T extends HostFrameType>(type: T, fields: AgentFields<T>, offset?: number): Promise<void>;
  /**
   * The next frame, of data or of another kind; credit for what was taken goes out by itself. One taker at a
   * time. Rejects with what the agent answered as `error` (the request has ended then), with the signal's
   * error, or with what closed the link.
   */
  receive(signal?: AbortSignal): Promise<StreamFrame>;
  /**
   * Sets where stdin goes on and how far the agent lets it go, as `exec-started` says. Files and ports start
   * at 0 with `WINDOW_BYTES_MIN`. Credit that goes back is a violation.
   */
  openInput(offset: number, credit: number): void;
  /** Writes to stdin, as fast as the agent takes it. One writer at a time. */
  write(data: Uint8Array, signal?: AbortSignal): Promise<void>;
  /** No more stdin comes. `offset`: of a file whose bytes went over a raw stream, how many there were. */
  endInput(offset?: number): Promise<void>;
  /** Bytes of stdin that were handed on so far. */
  readonly inputOffset: number;
  /**
   * Frees the number; what still comes is dropped. With `cancel` the agent is told: a file or port request
   * is given up, a command goes on.
   */
  leave(options?: { readonly cancel: boolean }): void;
}

/**
 * Takes what comes on a stream at once, in the turn in which it arrives: for a command's output, which goes
 * into a file and is never waited for.
 */
export interface StreamSink {
  /** The data is the sink's own. A throw is a fault of the agent and closes the link. */
  frame(frame: StreamFrame): void;
  /** The agent refused or ended the request (`fromAgent`), or the link has closed. Nothing follows. */
  failed(error: DsecError, fromAgent: boolean): void;
  /** Credit for stdin, absolute. */
  inputCredit(upTo: number): void;
}

/** A stream whose frames go to a sink. The sink acknowledges and grants. */
export type SinkStream = Pick<AgentStream, 'number' | 'send' | 'leave'> & {
  /** Writes bytes of stdin within the credit that the sink was told. */
  writeAt(offset: number, data: Uint8Array, end: boolean): Promise<void>;
};

export interface AgentLink {
  /** Another instance is another agent, which knows nothing of the commands of this one. Hexadecimal. */
  readonly instance: string;
  readonly agentVersion: string;
  /** A new stream. Throws `overloaded` at `streamsMax`, or what closed the link. */
  open(options?: StreamOptions): AgentStream;
  openSink(sink: StreamSink): SinkStream;
  /**
   * A request with one answer, which is returned (`done`, `file-attributes`, `file-entries`). An `error` is
   * thrown as the typed error that it is. Aborting cancels it.
   */
  request<T extends HostFrameType>(
    type: T,
    fields: AgentFields<T>,
    signal?: AbortSignal,
  ): Promise<StreamFrame>;
  /** Resolves when the agent has answered everything sent before. */
  ping(signal?: AbortSignal): Promise<void>;
  /** What a restored copy must be told before it is ready. */
  reseed(fields: AgentFields<'reseed'>, signal?: AbortSignal): Promise<void>;
  /** Closes at once. Streams end with the error. */
  close(error?: DsecError): void;
  /** Resolves once the link is gone, with the reason. */
  readonly closed: Promise<DsecError>;
}
