import { type DsecError, type Random, systemClock, systemRandom } from '@dsec/std';
import type { Deadline } from './deadline.ts';

export interface RetryPolicy {
  /** Attempts in all; 1 means none is repeated. */
  readonly attemptsMax: number;
  /** While no connection can be made; absent: as many. */
  readonly unreachedAttemptsMax?: number;
  /** The pause doubles with each attempt up to `delayMsMax`; a random share of it is waited. */
  readonly firstDelayMs: number;
  readonly delayMsMax: number;
}

export const RETRY_POLICY: RetryPolicy = { attemptsMax: 4, firstDelayMs: 50, delayMsMax: 2000 };

/**
 * Attempts work until it succeeds, fails for good, or time or attempts are used up; then throws the
 * last error.
 */
export async function withRetries<T>(
  policy: RetryPolicy,
  deadline: Deadline,
  attempt: () => Promise<T>,
  random: Random = systemRandom,
): Promise<T> {
  for (let count = 1; ; count += 1) {
    try {
      return await attempt();
    } catch (thrown) {
      const error = thrown as DsecError;
      const delayMs = Math.max(jitter(policy, count, random), retryAfterMs(error));
      if (count >= attemptsMax(policy, error) || !isTransient(error)) throw error;
      if (delayMs >= deadline.leftMs()) throw error;
      await systemClock.sleep(delayMs, deadline.signal);
    }
  }
}

/** Errors after which the same request may succeed soon, and of which none says that it was carried out. */
function isTransient({ code }: DsecError): boolean {
  return code === 'unavailable' || code === 'overloaded' || code === 'rate-limited';
}

function attemptsMax(policy: RetryPolicy, { details }: DsecError): number {
  const { attemptsMax: most, unreachedAttemptsMax = most } = policy;
  return details.reached === false ? unreachedAttemptsMax : most;
}

/** "Full jitter": callers that failed together do not come back together. */
function jitter(policy: RetryPolicy, count: number, random: Random): number {
  const ceiling = Math.min(policy.delayMsMax, policy.firstDelayMs * 2 ** (count - 1));
  return random.int(Math.ceil(ceiling) + 1);
}

function retryAfterMs({ details }: DsecError): number {
  return typeof details.retryAfterMs === 'number' ? details.retryAfterMs : 0;
}
