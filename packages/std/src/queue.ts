import { assert, DsecError } from './errors.ts';

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

/** A first-in first-out queue with a stated limit on items and on waiting producers, each at least 1. */
export function createBoundedQueue<T>(name: string, depthMax: number): BoundedQueue<T> {
  assert(Number.isInteger(depthMax) && depthMax >= 1, `queue ${name} needs room for an item`);
  const items: T[] = [];
  const takers = new Set<Waiter<T | undefined>>();
  const givers = new Map<Waiter<void>, T>();
  let closed = false;

  const give = (item: T) => {
    const [taker] = takers;
    if (taker === undefined) return void items.push(item);
    takers.delete(taker);
    taker.resolve(item);
  };
  const admitGiver = () => {
    const [next] = givers;
    if (next === undefined) return;
    givers.delete(next[0]);
    give(next[1]);
    next[0].resolve();
  };
  const whenClosed = () => new DsecError('unavailable', `queue ${name} is closed`);

  return {
    get depth() {
      return items.length;
    },
    push(item) {
      if (closed) throw whenClosed();
      if (items.length >= depthMax) {
        throw new DsecError('overloaded', `queue ${name} is full at ${depthMax}`);
      }
      give(item);
    },
    async pushWhenRoom(item, signal) {
      if (closed) throw whenClosed();
      if (items.length < depthMax) return give(item);
      if (givers.size >= depthMax) {
        throw new DsecError('overloaded', `queue ${name} has ${depthMax} producers waiting`);
      }
      await waitIn<void>(signal, {
        enter: (waiter) => givers.set(waiter, item),
        leave: (waiter) => givers.delete(waiter),
      });
    },
    async shift(signal) {
      if (items.length > 0) {
        const item = items.shift();
        admitGiver();
        return item;
      }
      if (closed) return undefined;
      return waitIn<T | undefined>(signal, {
        enter: (waiter) => takers.add(waiter),
        leave: (waiter) => takers.delete(waiter),
      });
    },
    close() {
      closed = true;
      for (const taker of takers) taker.resolve(undefined);
      takers.clear();
      for (const giver of givers.keys()) giver.reject(whenClosed());
      givers.clear();
    },
  };
}

interface WaitingRoom<T> {
  enter(waiter: Waiter<T>): void;
  leave(waiter: Waiter<T>): void;
}

function waitIn<T>(signal: AbortSignal | undefined, room: WaitingRoom<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      room.leave(waiter);
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
    room.enter(waiter);
  });
}
