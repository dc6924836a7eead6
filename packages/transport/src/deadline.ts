import { DsecError } from '@dsec/std';
import { onAborted } from './abort-listeners.ts';

export interface Deadline {
  /** Aborts with a `DsecError`: `deadline-exceeded` when time is up, `cancelled` when the caller gives up. */
  readonly signal: AbortSignal;
  /** Milliseconds left; 0 when it has passed. */
  leftMs(): number;
  /** No longer limits the time; the caller can still give up. */
  lift(): void;
  /** Releases the timer and the caller's signal. Always call it when the work is done. */
  stop(): void;
}

/** Setting a longer timer makes Node fire it at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** A time limit on work, joined with the caller's own signal. */
export function startDeadline(ms: number, caller?: AbortSignal): Deadline {
  const controller = new AbortController();
  const endMs = performance.now() + ms;
  const onTimeout = () =>
    controller.abort(new DsecError('deadline-exceeded', `not done within ${Math.round(ms)} ms`));
  const onAbort = () => controller.abort(abortError(caller));
  const timer = setTimeout(onTimeout, Math.min(ms, TIMER_MS_MAX));
  if (caller?.aborted) onAbort();
  const release = caller === undefined ? undefined : onAborted(caller, onAbort);
  return {
    signal: controller.signal,
    lift: () => clearTimeout(timer),
    leftMs: () => Math.max(0, endMs - performance.now()),
    stop() {
      clearTimeout(timer);
      release?.();
    },
  };
}

/** Why a signal aborted, as a `DsecError`. */
export function abortError(signal: AbortSignal | undefined): DsecError {
  const reason: unknown = signal?.reason;
  if (reason instanceof DsecError) return reason;
  const isTimeout = (reason as { name?: unknown } | undefined)?.name === 'TimeoutError';
  return isTimeout
    ? new DsecError('deadline-exceeded', 'the time is up', { cause: reason })
    : new DsecError('cancelled', 'the caller gave up', { cause: reason });
}
