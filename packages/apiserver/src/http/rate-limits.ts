/**
 * How fast a key, and all keys of a project together, may ask one apiserver. A bucket is one number (the
 * time at which it is empty of debts, "GCRA"), and those without debts are forgotten.
 */
import type { Identity } from '@dsec/iam';
import { type Clock, DsecError, SECOND_MS } from '@dsec/std';

export interface RateLimit {
  readonly perSecond: number;
  /** So many at once, after a while of silence. */
  readonly burst: number;
}

export interface RateLimits {
  /** Counts one request. Throws `rate-limited`, with how long to wait, and then it counts nothing. */
  take(identity: Pick<Identity, 'keyId' | 'project'>): void;
}

/** Keys in debt at a time; with more, the limit of projects is the only one. */
const BUCKETS_MAX = 65_536;
/** A project has many keys, and whoever may make some gains nothing by it beyond this. */
const PROJECT_FACTOR = 4;

/** Far more than a node serves; a loop that has gone wild is slowed down, not a job. */
export const RATE_LIMIT: RateLimit = { perSecond: 2000, burst: 10_000 };

export function createRateLimits(clock: Clock, limit: RateLimit = RATE_LIMIT): RateLimits {
  const { perSecond, burst } = limit;
  const ofProject = { perSecond: perSecond * PROJECT_FACTOR, burst: burst * PROJECT_FACTOR };
  const keys = createBuckets(limit);
  const projects = createBuckets(ofProject);
  return {
    take({ keyId, project }) {
      const nowMs = clock.monotonicMs();
      const waitMs = Math.max(keys.waitMs(keyId, nowMs), projects.waitMs(project, nowMs));
      if (waitMs > 0) throw refusal(Math.ceil(waitMs), perSecond);
      keys.take(keyId, nowMs);
      projects.take(project, nowMs);
    },
  };
}

function createBuckets({ perSecond, burst }: RateLimit) {
  const everyMs = SECOND_MS / perSecond;
  const spanMs = everyMs * burst;
  const debts = new Map<string, number>();
  let sweptMs = 0;
  const sweep = (nowMs: number) => {
    sweptMs = nowMs;
    for (const [name, freeMs] of debts) if (freeMs <= nowMs) debts.delete(name);
  };
  return {
    /** 0: there is room for one more. */
    waitMs: (name: string, nowMs: number): number =>
      Math.max(0, Math.max(debts.get(name) ?? 0, nowMs) + everyMs - nowMs - spanMs),
    take(name: string, nowMs: number): void {
      if (debts.size >= BUCKETS_MAX && !debts.has(name)) {
        // At most once a second, whoever comes.
        if (nowMs - sweptMs >= SECOND_MS) sweep(nowMs);
        if (debts.size >= BUCKETS_MAX) return;
      }
      debts.set(name, Math.max(debts.get(name) ?? 0, nowMs) + everyMs);
    },
  };
}

function refusal(retryAfterMs: number, perSecond: number): DsecError {
  return new DsecError('rate-limited', `more than ${perSecond} requests a second with this key`, {
    details: { limit: 'requests', perSecond, retryAfterMs },
  });
}
