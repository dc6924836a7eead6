import type { AetherFrame } from '@dsec/protocol';
import { asDsecError, DsecError, type ErrorCode, isErrorCode } from '@dsec/std';
import type { FramedChannel } from '@dsec/transport';
import type { RunningTime } from './running-time.ts';

type WithoutEnvelope<F> = F extends unknown ? Omit<F, 'epoch' | 'stream' | 'offset'> : never;
/** A frame to be sent; without an offset it gets the next sequence number. */
export type Outgoing = WithoutEnvelope<AetherFrame> & { readonly offset?: number };

/** What a stream belongs to. */
export interface StreamOwner {
  /** The next frame that can go now, at most one. */
  produce(): Outgoing | undefined;
  /** A frame of the host. Throws `protocol` for one that may not come here. */
  consume(frame: AetherFrame): void;
  /** The connection is gone, and the stream with it. */
  detached(): void;
}

/** One framed connection of a host. */
export interface AgentLink {
  readonly epoch: number;
  readonly streamCount: number;
  hasStream(number: number): boolean;
  owner(number: number): StreamOwner | undefined;
  open(number: number, owner: StreamOwner): void;
  /** Frees the number; nothing more is sent on it. */
  leave(number: number): void;
  /** The stream may have something to send. */
  markReady(number: number): void;
  put(stream: number, frame: Outgoing): void;
  putError(stream: number, error: unknown): void;
  /** Says why, if there is a reason, and closes the connection. */
  close(error?: DsecError): void;
}

export function createAgentLink(
  channel: FramedChannel<AetherFrame>,
  epoch: number,
  time: RunningTime,
): AgentLink {
  const streams = new Map<number, StreamOwner>();
  let sequence = 0;
  let isClosed = false;

  const send = (stream: number, frame: Outgoing) => {
    if (frame.offset === undefined) sequence += 1;
    return channel.send({ offset: sequence, ...frame, stream, epoch } as AetherFrame);
  };
  const put = (stream: number, frame: Outgoing) => {
    if (!isClosed) send(stream, frame).catch(fail);
  };
  const drop = () => {
    isClosed = true;
    const owners = [...streams.values()];
    streams.clear();
    for (const owner of owners) owner.detached();
  };
  const fail = (thrown: unknown) => {
    drop();
    channel.close(asDsecError(thrown));
  };
  const pump = createPump(async (stream) => {
    await time.thawed();
    const frame = streams.get(stream)?.produce();
    if (frame === undefined) return false;
    await send(stream, frame);
    return true;
  }, fail);
  void channel.closed.then(drop);
  return {
    epoch,
    get streamCount() {
      return streams.size;
    },
    hasStream: (number) => streams.has(number),
    owner: (number) => streams.get(number),
    open: (number, owner) => void streams.set(number, owner),
    leave: (number) => void streams.delete(number),
    markReady(number) {
      if (streams.has(number)) pump(number);
    },
    put,
    putError: (stream, error) => put(stream, errorFrame(error)),
    close(error) {
      if (error !== undefined) put(0, errorFrame(error));
      drop();
      channel.end().then(
        () => channel.close(error),
        () => {},
      );
    },
  };
}

/** Lets each ready stream send one frame in turn; `send` says whether there may be more. */
function createPump(
  send: (stream: number) => Promise<boolean>,
  fail: (thrown: unknown) => void,
): (stream: number) => void {
  const ready = new Set<number>();
  let isPumping = false;
  const pump = async () => {
    isPumping = true;
    try {
      // What becomes ready in the same turn goes together.
      await undefined;
      for (const stream of ready) {
        ready.delete(stream);
        if (await send(stream)) ready.add(stream);
      }
    } catch (thrown) {
      fail(thrown);
    } finally {
      isPumping = false;
    }
  };
  return (stream) => {
    ready.add(stream);
    if (!isPumping) void pump();
  };
}

export function errorFrame(thrown: unknown): Outgoing {
  const error = asDsecError(thrown);
  return { type: 'error', fields: { code: error.code, message: error.message } };
}

/** The error that a peer's frame stands for. */
export function errorOf(fields: { readonly code: string; readonly message: string }): DsecError {
  const code: ErrorCode = isErrorCode(fields.code) ? fields.code : 'internal';
  return new DsecError(code, fields.message);
}
