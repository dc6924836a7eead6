import type { Duplex } from 'node:stream';
import {
  createFrameDecoder,
  encodeDataHeader,
  encodeFrame,
  FRAME_HEADER_BYTES,
  type FrameOf,
  type FrameProtocol,
  type FrameSide,
} from '@dsec/protocol';
import { type Clock, DsecError, KIB, MIB, systemClock } from '@dsec/std';
import { createInbox, type Inbox, takeAll } from './inbox.ts';
import { createOutbox } from './outbox.ts';

export interface FramedChannelLimits {
  /** Bytes handed to the connection that it has not written; further sends wait. */
  readonly sendBytesMax: number;
  /** Sends that may wait. */
  readonly sendersMax: number;
  /** Frames, and their data bytes, received and not taken: then the connection is paused. */
  readonly receiveFramesMax: number;
  readonly receiveBytesMax: number;
  /** Frames accepted in a second; faster peers are paused, so that none takes the thread from the others. */
  readonly receiveFramesPerSecondMax: number;
}

export const FRAMED_CHANNEL_LIMITS: FramedChannelLimits = {
  sendBytesMax: MIB,
  sendersMax: 4096,
  receiveFramesMax: 1024,
  receiveBytesMax: MIB,
  receiveFramesPerSecondMax: 100_000,
};

export interface FramedChannelOptions<P extends FrameProtocol> {
  readonly protocol: P;
  /** Which side this end is. */
  readonly side: FrameSide;
  readonly limits?: Partial<FramedChannelLimits>;
  readonly clock?: Clock;
}

/**
 * Frames over any byte stream: unix socket, virtio-serial, vsock. Both directions have backpressure
 * and bounded memory. A peer that breaks the protocol loses this channel, with `protocol`, and
 * nothing else.
 */
export interface FramedChannel<Frame> {
  /**
   * Sends a frame after those before it; waits while the connection takes no more. The frame's
   * bytes belong to the channel from now on. Rejects with `invalid-argument` (the frame breaks a
   * limit), `overloaded`, the signal's error, or what ended the channel.
   */
  send(frame: Frame, signal?: AbortSignal): Promise<void>;
  /**
   * The next frame; `undefined` when the peer has ended properly. Rejects with what else ended the
   * channel.
   */
  receive(signal?: AbortSignal): Promise<Frame | undefined>;
  /** Everything that `receive` gives. Leaving the loop does not close the channel. */
  frames(): AsyncIterable<Frame>;
  /**
   * Writes what was sent, then closes this direction. Rejects with the signal's error, or what
   * ended the channel.
   */
  end(signal?: AbortSignal): Promise<void>;
  /** Closes at once. Waiting sends and receives reject with the error. */
  close(error?: DsecError): void;
  /** Resolves once the connection is gone: with what ended it, `undefined` if both sides agreed. */
  readonly closed: Promise<DsecError | undefined>;
  /** Handed to the connection and not written yet. */
  readonly sendBytes: number;
}

/** Shorter data is copied behind its header: cheaper than a second buffer for the kernel. */
const COPY_BYTES_MAX = 4 * KIB;
/** A peer that was silent may send this much of its rate at once. */
const BURST_MS = 100;

export function createFramedChannel<P extends FrameProtocol>(
  duplex: Duplex,
  options: FramedChannelOptions<P>,
): FramedChannel<FrameOf<P>> {
  const limits = { ...FRAMED_CHANNEL_LIMITS, ...options.limits };
  const valve = createValve(duplex);
  const brake = createBrake(valve, options.clock ?? systemClock, limits.receiveFramesPerSecondMax);
  const inbox = createInbox<FrameOf<P>>({
    itemsMax: limits.receiveFramesMax,
    bytesMax: limits.receiveBytesMax,
    pause: () => valve.hold('full'),
    resume: () => valve.release('full'),
  });
  const outbox = createOutbox<FrameOf<P>>({
    bytesMax: limits.sendBytesMax,
    sendersMax: limits.sendersMax,
    write: createFrameWriter(duplex, options.protocol),
  });
  let ended: DsecError | undefined;
  const closed = new Promise<DsecError | undefined>((resolve) => {
    duplex.once('close', () => {
      const lost = ended ?? new DsecError('unavailable', 'the connection was closed');
      if (!duplex.readableEnded) ended = lost;
      fail(lost);
      resolve(ended);
    });
  });
  const fail = (error: DsecError) => {
    inbox.end(error);
    outbox.fail(error);
  };
  const close = (error: DsecError) => {
    if (duplex.destroyed) return;
    ended = error;
    fail(error);
    duplex.destroy();
  };
  duplex.on('error', (cause) => {
    ended ??= new DsecError('unavailable', 'the connection was lost', { cause });
    fail(ended);
  });
  readFrames(duplex, options, brake, inbox, close);

  const receive = (signal?: AbortSignal) => inbox.take(signal);
  return {
    send: (frame, signal) => outbox.send(frame, signal),
    receive,
    frames: () => takeAll(receive),
    async end(signal) {
      await outbox.flushed(signal);
      outbox.fail(new DsecError('unavailable', 'the channel has ended'));
      await new Promise<void>((resolve, reject) => {
        duplex.end((cause?: Error | null) => {
          if (!cause) return resolve();
          reject(ended ?? new DsecError('unavailable', 'the connection was lost', { cause }));
        });
      });
    },
    close: (error = new DsecError('cancelled', 'the channel was closed')) => close(error),
    closed,
    get sendBytes() {
      return outbox.bytes;
    },
  };
}

/**
 * Frames sent in one turn of the event loop go to the kernel in one call; data goes uncopied behind
 * its header.
 */
function createFrameWriter<P extends FrameProtocol>(duplex: Duplex, protocol: P) {
  let corked = false;
  const uncork = () => {
    corked = false;
    duplex.uncork();
  };
  return (frame: FrameOf<P>, done: (failure?: Error | null) => void): number => {
    const data = 'data' in frame ? (frame.data as Uint8Array) : undefined;
    const buffers =
      data !== undefined && data.byteLength > COPY_BYTES_MAX
        ? [encodeDataHeader(protocol, { ...frame, data }), data]
        : [encodeFrame(protocol, frame)];
    if (!corked) {
      corked = true;
      duplex.cork();
      process.nextTick(uncork);
    }
    let bytes = 0;
    for (const [index, buffer] of buffers.entries()) {
      bytes += buffer.byteLength;
      duplex.write(buffer, index === buffers.length - 1 ? done : undefined);
    }
    return bytes;
  };
}

function readFrames<P extends FrameProtocol>(
  duplex: Duplex,
  options: FramedChannelOptions<P>,
  brake: (count: number) => void,
  inbox: Inbox<FrameOf<P>>,
  close: (error: DsecError) => void,
): void {
  const { protocol, side } = options;
  const decoder = createFrameDecoder(protocol, {
    from: side === 'client' ? 'server' : 'client',
    splitData: true,
  });
  const guarded = (work: () => void) => {
    try {
      work();
    } catch (thrown) {
      close(thrown as DsecError);
    }
  };
  duplex.on('data', (chunk: Buffer) =>
    guarded(() => {
      const frames = decoder.push(chunk);
      for (const frame of frames) {
        const data = 'data' in frame ? (frame.data as Uint8Array).byteLength : 0;
        inbox.push(frame, FRAME_HEADER_BYTES + data);
      }
      brake(frames.length);
    }),
  );
  duplex.on('end', () =>
    guarded(() => {
      decoder.end();
      inbox.end();
    }),
  );
}

/** A source flows while no reason holds it. */
interface Valve {
  hold(reason: 'full' | 'fast'): void;
  release(reason: 'full' | 'fast'): void;
}

function createValve(duplex: Duplex): Valve {
  const reasons = new Set<string>();
  return {
    hold(reason) {
      reasons.add(reason);
      duplex.pause();
    },
    release(reason) {
      if (reasons.delete(reason) && reasons.size === 0) duplex.resume();
    },
  };
}

/** Holds a source that sends more than so many in a second, for as long as it is ahead (a token bucket). */
function createBrake(valve: Valve, clock: Clock, perSecondMax: number): (count: number) => void {
  const perMs = perSecondMax / 1000;
  const burst = perMs * BURST_MS;
  let tokens = burst;
  let atMs = clock.monotonicMs();
  let braking = false;
  return (count) => {
    const nowMs = clock.monotonicMs();
    tokens = Math.min(burst, tokens + (nowMs - atMs) * perMs) - count;
    atMs = nowMs;
    if (tokens >= 0 || braking) return;
    braking = true;
    valve.hold('fast');
    void clock.sleep(-tokens / perMs).then(() => {
      braking = false;
      valve.release('fast');
    });
  };
}
