import { abortError } from '@dsec/transport';

/** Those who wait for the next change of something. */
export interface Wakers {
  /** Resolves at the next `wakeAll`. Rejects with the signal's error. */
  wait(signal?: AbortSignal): Promise<void>;
  /** Calls `fn` at the next `wakeAll`, unless the function that is returned is called before. */
  once(fn: () => void): () => void;
  wakeAll(): void;
}

export function createWakers(): Wakers {
  let waiting = new Set<() => void>();
  return {
    wait: (signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(abortError(signal));
        const onAbort = () => {
          waiting.delete(wake);
          reject(abortError(signal));
        };
        const wake = () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        };
        waiting.add(wake);
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
    once(fn) {
      // The same function may wait twice.
      const wake = () => fn();
      waiting.add(wake);
      return () => void waiting.delete(wake);
    },
    wakeAll() {
      if (waiting.size === 0) return;
      const woken = waiting;
      waiting = new Set();
      for (const wake of woken) wake();
    },
  };
}
