import { setImmediate } from 'node:timers/promises';
import { DsecError } from '@dsec/std';

/** How long synchronous work may hold the event loop before an abort must be able to come through. */
const TURN_MS = 20;
const PROGRESS_MS = 200;

/** Keeps a mostly synchronous import abortable, and counts what it has read. */
export interface Pace {
  readonly signal: AbortSignal | undefined;
  /** Bytes read from the source so far, as stored there; what is passed over counts as read. */
  readonly bytes: number;
  /** How many there will be, where that is known. */
  readonly bytesTotal: number | null;
  count(bytes: number): void;
  expect(bytesTotal: number): void;
  /**
   * Cheap enough for every entry. `undefined` while there is nothing to do; else a promise that lets the
   * event loop turn once and rejects with `cancelled` after an abort.
   */
  due(): Promise<void> | undefined;
}

export interface PaceOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called a few times a second. */
  readonly onProgress?: ((pace: Pace) => void) | undefined;
}

export function createPace({ signal, onProgress }: PaceOptions = {}): Pace {
  let turnedAt = performance.now();
  let toldAt = turnedAt;
  let bytes = 0;
  let bytesTotal: number | null = null;

  const turn = async () => {
    await setImmediate();
    throwIfCancelled(signal);
    turnedAt = performance.now();
    if (turnedAt - toldAt >= PROGRESS_MS) {
      toldAt = turnedAt;
      onProgress?.(pace);
    }
  };

  const pace: Pace = {
    signal,
    get bytes() {
      return bytes;
    },
    get bytesTotal() {
      return bytesTotal;
    },
    count(more) {
      bytes += more;
    },
    expect(total) {
      bytesTotal = total;
    },
    due: () => (performance.now() - turnedAt < TURN_MS ? undefined : turn()),
  };
  return pace;
}

export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) {
    throw new DsecError('cancelled', 'the import was cancelled', { cause: signal.reason });
  }
}
