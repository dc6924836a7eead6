import { FRAME_DATA_BYTES_MAX } from '@dsec/protocol';
import { DsecError } from '@dsec/std';

/** A part of an output that goes to the host as one data frame. */
export interface OutputPiece {
  readonly offset: number;
  readonly data: Uint8Array;
  readonly end: boolean;
}

/**
 * Output on its way to the host, in a ring of one window, numbered from the first byte on:
 *
 *     base ≤ sent ≤ head, sent ≤ credit, head - base ≤ window
 *
 * Below `base` it is acknowledged, below `sent` it was sent on this connection, below `head` it was written.
 */
export interface Outlet {
  /** Resolves when all bytes are in the ring, or dropped because nobody reads any more. */
  write(bytes: Uint8Array, signal?: AbortSignal): Promise<void>;
  /** Nothing comes after what was written; what is written later is dropped. */
  end(): void;
  /** What can be sent now, at most one frame; counts as sent. */
  take(): OutputPiece | undefined;
  /** Throws `protocol` for bytes that were never sent. */
  acknowledge(offset: number): void;
  grant(credit: number): void;
  /** Goes on from there on a new connection; false when those bytes are gone or never were. */
  resume(offset: number): boolean;
  readonly base: number;
  readonly head: number;
  /** Everything was sent, and its end. */
  readonly isDone: boolean;
}

export interface OutletOptions {
  readonly windowBytes: number;
  /** False: what is sent need not be kept, as the request ends with its connection. */
  readonly keeps: boolean;
  /** There may be something to take. */
  onReady(): void;
}

interface Ring {
  bytes: Buffer | undefined;
  base: number;
  sent: number;
  head: number;
  credit: number;
  ended: boolean;
  endSent: boolean;
  waiting: (() => void)[];
}

export function createOutlet(options: OutletOptions): Outlet {
  const { windowBytes, keeps, onReady } = options;
  const ring: Ring = {
    bytes: undefined,
    base: 0,
    sent: 0,
    head: 0,
    credit: windowBytes,
    ended: false,
    endSent: false,
    waiting: [],
  };
  const settle = () => {
    if (ring.head === ring.base) ring.bytes = undefined;
    for (const wake of ring.waiting.splice(0)) wake();
    onReady();
  };
  return {
    write: (bytes, signal) => writeAll(ring, options, bytes, signal),
    end() {
      ring.ended = true;
      settle();
    },
    take() {
      const piece = takePiece(ring, windowBytes);
      if (piece === undefined) return undefined;
      if (!keeps) {
        ring.base = ring.sent;
        settle();
      }
      return piece;
    },
    acknowledge(offset) {
      if (offset > ring.sent) {
        throw new DsecError('protocol', `${offset} is acknowledged, ${ring.sent} were sent`);
      }
      if (!keeps || offset <= ring.base) return;
      ring.base = offset;
      settle();
    },
    grant(credit) {
      if (credit <= ring.credit) return;
      ring.credit = credit;
      onReady();
    },
    resume(offset) {
      if (offset < ring.base || offset > ring.head) return false;
      ring.base = offset;
      ring.sent = offset;
      ring.endSent = false;
      ring.credit = Math.max(ring.credit, offset + windowBytes);
      settle();
      return true;
    },
    get base() {
      return ring.base;
    },
    get head() {
      return ring.head;
    },
    get isDone() {
      return ring.endSent;
    },
  };
}

async function writeAll(
  ring: Ring,
  { windowBytes, onReady }: OutletOptions,
  bytes: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<void> {
  let at = 0;
  while (at < bytes.byteLength && !ring.ended) {
    const room = windowBytes - (ring.head - ring.base);
    if (room === 0) {
      await roomIn(ring, signal);
      continue;
    }
    ring.bytes ??= Buffer.allocUnsafeSlow(windowBytes);
    const place = ring.head % windowBytes;
    const length = Math.min(room, bytes.byteLength - at, windowBytes - place);
    ring.bytes.set(bytes.subarray(at, at + length), place);
    ring.head += length;
    at += length;
    onReady();
  }
}

function roomIn(ring: Ring, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const wake = () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    };
    const onAbort = () => {
      ring.waiting = ring.waiting.filter((other) => other !== wake);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    ring.waiting.push(wake);
  });
}

function takePiece(ring: Ring, windowBytes: number): OutputPiece | undefined {
  const place = ring.sent % windowBytes;
  const length = Math.min(
    Math.max(0, Math.min(ring.head, ring.credit) - ring.sent),
    FRAME_DATA_BYTES_MAX,
    windowBytes - place,
  );
  const isLast = ring.ended && !ring.endSent && ring.sent + length === ring.head;
  if (length === 0 && !isLast) return undefined;
  const offset = ring.sent;
  // A copy: the ring's place may be used again before the other end has read it.
  const data = Buffer.from(ring.bytes?.subarray(place, place + length) ?? []);
  ring.sent += length;
  if (isLast) ring.endSent = true;
  return { offset, data, end: isLast };
}
