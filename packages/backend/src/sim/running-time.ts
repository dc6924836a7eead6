import type { Clock } from '@dsec/std';

/** The time of a sandbox that can be frozen: it stands still meanwhile. */
export interface RunningTime {
  nowMs(): number;
  readonly isFrozen: boolean;
  freeze(): void;
  thaw(): void;
  /** What a frozen process does at its next step: waits. Nothing to wait for when it is not. */
  thawed(): Promise<void> | undefined;
  /** Resolves after so much running time; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export function createRunningTime(clock: Clock): RunningTime {
  let frozenSinceMs: number | undefined;
  let frozenMs = 0;
  let gate: Promise<void> | undefined;
  let open = () => {};

  const nowMs = () => (frozenSinceMs ?? clock.monotonicMs()) - frozenMs;
  return {
    nowMs,
    get isFrozen() {
      return gate !== undefined;
    },
    freeze() {
      if (gate !== undefined) return;
      frozenSinceMs = clock.monotonicMs();
      gate = new Promise((resolve) => {
        open = resolve;
      });
    },
    thaw() {
      if (frozenSinceMs === undefined) return;
      frozenMs += clock.monotonicMs() - frozenSinceMs;
      frozenSinceMs = undefined;
      gate = undefined;
      open();
    },
    thawed: () => gate,
    async sleep(ms, signal) {
      const endMs = nowMs() + ms;
      for (let leftMs = ms; leftMs > 0; leftMs = endMs - nowMs()) {
        await clock.sleep(leftMs, signal);
        await unlessAborted(gate, signal);
      }
      await unlessAborted(gate, signal);
    },
  };
}

/** Waits for a promise, or rejects with the signal's reason; then the promise is left alone. */
export async function unlessAborted<T>(
  promise: Promise<T> | undefined,
  signal: AbortSignal | undefined,
): Promise<T | undefined> {
  if (promise === undefined || signal === undefined) return promise;
  signal.throwIfAborted();
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
