import { DsecError } from '@dsec/std';

/** Changes of one sandbox, one after another. */
export interface Lane {
  /** Runs `work` when everything before it is done. Throws `overloaded` when too much waits. */
  run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Aborts what runs and what waits, with this reason. What comes later is not touched. */
  interrupt(reason: DsecError): void;
  /** Resolves when nothing of what was there at the call runs or waits. */
  idle(): Promise<void>;
}

const WAITING_MAX = 64;

export function createLane(): Lane {
  let tail: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let controller = new AbortController();
  return {
    run(work) {
      if (waiting >= WAITING_MAX) {
        throw new DsecError('overloaded', `${waiting} changes of the sandbox wait already`);
      }
      const { signal } = controller;
      waiting += 1;
      const result = tail.then(() => {
        signal.throwIfAborted();
        return work(signal);
      });
      tail = result.catch(() => undefined).then(() => (waiting -= 1));
      return result;
    },
    interrupt(reason) {
      controller.abort(reason);
      controller = new AbortController();
    },
    async idle() {
      await tail;
    },
  };
}
