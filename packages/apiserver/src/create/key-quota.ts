import { type Clock, DsecError, HOUR_MS } from '@dsec/std';

/** How many idempotency keys a project may use anew in an hour, at one apiserver: each is kept for a day. */
export interface KeyQuota {
  /** Throws `quota-exceeded`. */
  take(project: string): void;
}

export const KEYS_PER_HOUR_MAX = 200_000;

export function createKeyQuota(clock: Clock, max: number = KEYS_PER_HOUR_MAX): KeyQuota {
  let counts = new Map<string, number>();
  let sinceMs = clock.monotonicMs();
  return {
    take(project) {
      const nowMs = clock.monotonicMs();
      if (nowMs - sinceMs >= HOUR_MS) [counts, sinceMs] = [new Map(), nowMs];
      const count = (counts.get(project) ?? 0) + 1;
      if (count > max) {
        throw new DsecError('quota-exceeded', `the project has used ${max} keys within an hour`, {
          details: { limit: 'idempotency-keys', max },
        });
      }
      counts.set(project, count);
    },
  };
}
