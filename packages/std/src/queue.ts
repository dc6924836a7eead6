import { DsecError } from './errors.ts';

export interface BoundedQueue<T> {
  readonly depth: number;
  /** Adds an item, or throws `overloaded` when `depthMax` items wait. */
  push(item: T): void;
  /** Adds an item, waiting for room. Waiters are served in order. */
  pushWhenRoom(item: T, signal?: AbortSignal): Promise<void>;
  /** The oldest item; waits for one; `undefined` once the queue is closed and empty. */
  shift(signal?: AbortSignal): Promise<T | undefined>;
  /** No more items come in; those inside can still be taken. */
  close(): void;
}

interface Waiter<T> {
  resolve(value: T): void;
  reject(reason: unknown): void;
}

/** A first-in first-out queue with a stated limit on items and on waiting producers. */
export function createBoundedQueue<T>(name: string, depthMax: number): BoundedQueue<T> {
  const items: T[] = [];
  const takers = new Set<Waiter<T | undefined>>();
  const givers = new Map<Waiter<void>, T>();
  let closed = false;

  const give = (item: T) => {
    const [taker] = takers;
    if (taker !== undefined) {
      takers.delete(taker);
      taker.resolve(item);
    } else {
      items.push(item);
    }
  };
  const admitGiver = () => {
    const [next] = givers;
    if (next === undefined) return;
    givers.delete(next[0]);
    give(next[1]);
    next[0].resolve();
  };
  const refuseIfClosed = () => {
    if (closed) throw new DsecError('unavailable', `queue ${name} is closed`);
  };

  return {
    get depth() {
      return items.length;
    },
    push(item) {
      refuseIfClosed();
      if (items.length >= depthMax) {
        throw new DsecError('overloaded', `queue ${name} is full at ${depthMax}`);
      }
      give(item);
    },
    async pushWhenRoom(item, signal) {
      refuseIfClosed();
      if (items.length < depthMax) return give(item);
      if (givers.size >= depthMax) {
        throw new DsecError('overloaded', `queue ${name} has ${depthMax} producers waiting`);
      }
      await waitIn<void>(
        (waiter) => givers.set(waiter, item),
        (waiter) => givers.delete(waiter),
        signal,
      );
    },
    async shift(signal) {
      const item = items.shift();
      if (item !== undefined) {
        admitGiver();
        return item;
      }
      if (closed) return undefined;
      return waitIn<T | undefined>(
        (w) => takers.add(w),
        (w) => takers.delete(w),
        signal,
      );
    },
    close() {
      closed = true;
      for (const taker of takers) taker.resolve(undefined);
      takers.clear();
      const error = new DsecError('unavailable', `queue ${name} is closed`);
      for (const giver of givers.keys()) giver.reject(error);
      givers.clear();
    },
  };
}

function waitIn<T>(
  enter: (waiter: Waiter<T>) => void,
  leave: (waiter: Waiter<T>) => void,
  signal: AbortSignal | undefined,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      leave(waiter);
      reject(signal?.reason);
    };
    const settle =
      <A>(then: (value: A) => void) =>
      (value: A) => {
        signal?.removeEventListener('abort', onAbort);
        then(value);
      };
    const waiter: Waiter<T> = {
      resolve: settle(resolve as (value: T) => void),
      reject: settle(reject),
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    enter(waiter);
  });
}
