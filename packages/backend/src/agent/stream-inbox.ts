import { assert, DsecError, KIB } from '@dsec/std';
import { abortError } from '@dsec/transport';
import type { StreamFrame } from './agent-link.ts';

/**
 * Frames that wait for the reader of one stream. Data is bounded by its credit and kept without the chunks
 * that it came in; other frames are counted.
 */
export interface StreamInbox {
  /** Throws `protocol` when too many wait. */
  push(frame: StreamFrame): void;
  pushData(frame: DataFrame): void;
  /** What is inside can still be taken; then `take` rejects with the error. */
  end(error: DsecError): void;
  /** The oldest frame, waiting for one. One taker at a time. */
  take(signal?: AbortSignal): Promise<StreamFrame>;
}

export type DataFrame = StreamFrame & { type: 'stdout' | 'stderr' };

/** Shorter data is copied when it has to wait, so that a byte never holds the chunk that it came in. */
const COPY_BYTES_MAX = 4 * KIB;
const BLOCK_BYTES = 16 * KIB;

interface Waiting {
  readonly frame: StreamFrame;
  /** Small data is gathered here, in front of which `frame` says where it belongs. */
  readonly block?: Buffer;
  used: number;
  end: boolean;
}

interface Queue {
  readonly waiting: Waiting[];
  controls: number;
  /** The last of each channel, while more may be gathered there. */
  blocks: { stdout?: Waiting; stderr?: Waiting };
  failure: DsecError | undefined;
  wake: (() => void) | undefined;
  isTaking: boolean;
}

export function createStreamInbox(controlsMax: number): StreamInbox {
  const queue: Queue = {
    ...{ waiting: [], controls: 0, blocks: {} },
    ...{ failure: undefined, wake: undefined, isTaking: false },
  };
  return {
    push(frame) {
      if (queue.failure !== undefined) return;
      queue.controls += 1;
      if (queue.controls > controlsMax) {
        throw new DsecError('protocol', `${controlsMax} frames wait on a stream already`);
      }
      queue.blocks = {};
      add(queue, { frame, used: 0, end: false });
    },
    pushData(frame) {
      if (queue.failure !== undefined) return;
      const isSmall = frame.data.byteLength < COPY_BYTES_MAX;
      if (isSmall && (queue.wake === undefined || queue.waiting.length > 0)) {
        gather(queue, frame);
        return;
      }
      delete queue.blocks[frame.type];
      add(queue, { frame, used: 0, end: false });
    },
    end(error) {
      queue.failure ??= error;
      queue.wake?.();
    },
    async take(signal) {
      assert(!queue.isTaking, 'a stream has one taker at a time');
      queue.isTaking = true;
      try {
        for (let frame = next(queue); ; frame = next(queue)) {
          if (frame !== undefined) return frame;
          if (queue.failure !== undefined) throw queue.failure;
          if (signal?.aborted) throw abortError(signal);
          await waitForMore(queue, signal);
        }
      } finally {
        queue.isTaking = false;
      }
    },
  };
}

function add(queue: Queue, item: Waiting): void {
  queue.waiting.push(item);
  queue.wake?.();
}

/** Puts small data into the last block of its channel, or into a new one. */
function gather(queue: Queue, frame: DataFrame): void {
  const open = queue.blocks[frame.type];
  if (open?.block !== undefined && open.used + frame.data.byteLength <= BLOCK_BYTES) {
    open.block.set(frame.data, open.used);
    open.used += frame.data.byteLength;
    open.end = frame.end;
    return;
  }
  const block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  block.set(frame.data);
  const item = { frame: withoutChunk(frame), block, used: frame.data.byteLength, end: frame.end };
  queue.blocks[frame.type] = item;
  add(queue, item);
}

function withoutChunk(frame: DataFrame): DataFrame {
  return { ...frame, data: new Uint8Array(0) };
}

function next(queue: Queue): StreamFrame | undefined {
  const item = queue.waiting.shift();
  if (item === undefined) return undefined;
  const { frame, block, used, end } = item;
  if (frame.type !== 'stdout' && frame.type !== 'stderr') {
    queue.controls -= 1;
    return frame;
  }
  if (queue.blocks[frame.type] === item) delete queue.blocks[frame.type];
  return block === undefined ? frame : { ...frame, data: block.subarray(0, used), end };
}

function waitForMore(queue: Queue, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      signal?.removeEventListener('abort', settle);
      queue.wake = undefined;
      resolve();
    };
    signal?.addEventListener('abort', settle, { once: true });
    queue.wake = settle;
  });
}
