import { DsecError, SECOND_MS } from '@dsec/std';

/** What is left of a sandbox's resumes: one more comes back with every `RESUME_EVERY_MS`. */
export interface ResumeBudget {
  left: number;
  asOfMs: number;
}

export const RESUMES_MAX = 20;
export const RESUME_EVERY_MS = SECOND_MS;

export const newResumeBudget = (): ResumeBudget => ({ left: RESUMES_MAX, asOfMs: 0 });

/**
 * Takes one. Throws `rate-limited` when none is left: requests that wake a sandbox which somebody pauses
 * again and again would keep the node busy with nothing else (THREATS C8).
 */
export function takeResume(budget: ResumeBudget, nowMs: number): void {
  const back = Math.max(0, nowMs - budget.asOfMs) / RESUME_EVERY_MS;
  budget.left = Math.min(RESUMES_MAX, budget.left + back);
  budget.asOfMs = nowMs;
  if (budget.left < 1) {
    throw new DsecError('rate-limited', 'the sandbox is resumed too often', {
      details: { retryAfterMs: Math.ceil((1 - budget.left) * RESUME_EVERY_MS) },
    });
  }
  budget.left -= 1;
}
