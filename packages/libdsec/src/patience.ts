import { SECOND_MS, systemClock, systemRandom } from '@dsec/std';
import { type DsecError, Timeout } from './errors.ts';

const FIRST_PAUSE_MS = 50;
const PAUSE_MS_MAX = 2 * SECOND_MS;
/** A connection that has held for so long was a good one. */
const HELD_MS = 5 * SECOND_MS;

/** How long a stream that broke off is taken up again without getting any further. */
export interface Patience {
  /** Something came: the time begins anew. */
  progressed(): void;
  /** The stream is open (again). */
  opened(): void;
  /** Pauses before the next attempt. Throws the error when it is for good, or when patience is at its end. */
  pause(error: DsecError, signal?: AbortSignal): Promise<void>;
}

export function createPatience(limitMs: number): Patience {
  let sinceMs: number | undefined;
  let openedMs: number | undefined;
  let attempts = 0;
  const progressed = () => {
    sinceMs = undefined;
    attempts = 0;
  };
  return {
    progressed,
    opened() {
      openedMs = systemClock.monotonicMs();
    },
    async pause(error, signal) {
      const nowMs = systemClock.monotonicMs();
      if (openedMs !== undefined && nowMs - openedMs >= HELD_MS) progressed();
      openedMs = undefined;
      sinceMs ??= nowMs;
      attempts += 1;
      const ceilingMs = Math.min(PAUSE_MS_MAX, FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 10));
      const pauseMs = 1 + systemRandom.int(ceilingMs);
      if (!isTransient(error) || nowMs - sinceMs + pauseMs > limitMs) throw error;
      await systemClock.sleep(pauseMs, signal);
    },
  };
}

function isTransient({ code }: DsecError): boolean {
  return code === 'unavailable' || code === 'overloaded' || code === 'rate-limited';
}

/** Time that is left of a wait. */
export interface Wait {
  /** At most `most`. Throws `Timeout` when nothing is left. */
  leftMs(most: number): number;
}

/** `timeoutS` absent: without end. `what` is said when it is over. */
export function startWait(timeoutS: number | undefined, what: string): Wait {
  const endMs =
    timeoutS === undefined ? Infinity : systemClock.monotonicMs() + timeoutS * SECOND_MS;
  return {
    leftMs(most) {
      const leftMs = Math.ceil(endMs - systemClock.monotonicMs());
      if (leftMs <= 0) throw new Timeout(`${what} within ${timeoutS} s`);
      return Math.min(most, leftMs);
    },
  };
}
