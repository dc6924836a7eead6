import { SECOND_MS } from '@dsec/std';

const FIRST_MS = 100;
const MOST_MS = 5 * SECOND_MS;
/** One that ran for so long had started well. */
const STABLE_MS = 30 * SECOND_MS;

/** How long to wait before a part is started again, by how its last runs went. */
export interface Backoff {
  next(ranMs: number): number;
}

export function createBackoff(): Backoff {
  let waitMs = FIRST_MS;
  return {
    next(ranMs) {
      if (ranMs >= STABLE_MS) waitMs = FIRST_MS;
      const now = waitMs;
      waitMs = Math.min(waitMs * 2, MOST_MS);
      return now;
    },
  };
}
