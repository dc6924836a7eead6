import { asDsecError, type Clock, type DsecError, type Random, SECOND_MS } from '@dsec/std';

export interface AttemptsOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** Whether a request that may have arrived does no harm when it arrives again. */
  readonly mayRepeat: boolean;
  readonly patienceMs?: number;
}

/** Longer than a restarted edge refuses tickets of before. */
const PATIENCE_MS = 6 * SECOND_MS;
const FIRST_DELAY_MS = 20;
const DELAY_MS_MAX = 400;

/**
 * Attempts something at an edge until it succeeds, fails for good or patience ends; then throws the last
 * error. Only an edge that cannot be reached, or that says that it has not begun, is asked again.
 */
export async function attempts<T>(
  work: () => Promise<T>,
  { clock, random, signal, mayRepeat, patienceMs = PATIENCE_MS }: AttemptsOptions,
): Promise<T> {
  const endMs = clock.monotonicMs() + patienceMs;
  for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(DELAY_MS_MAX, delayMs * 2)) {
    try {
      return await work();
    } catch (thrown) {
      const error = asDsecError(thrown);
      const waitMs = delayMs / 2 + random.int(delayMs);
      const isLast = clock.monotonicMs() + waitMs >= endMs;
      if (signal.aborted || isLast || !isTransient(error, mayRepeat)) throw error;
      await clock.sleep(waitMs, signal);
    }
  }
}

function isTransient({ code, details }: DsecError, mayRepeat: boolean): boolean {
  if (code !== 'unavailable') return false;
  return mayRepeat || details.sent === false || details.begun === false;
}
