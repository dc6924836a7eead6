/**
 * Things that are expensive to open and shared by whoever names the same key: opened once, by the first
 * user, and closed when the last one is gone.
 */
export interface SharedPool<Key, Value> {
  /**
   * The open thing, or the one that is being opened. A failure to open reaches every waiter, and the next
   * call tries anew. Aborting `signal` ends this caller's wait; `open` is told only when nobody waits any
   * more.
   */
  acquire(
    key: Key,
    open: (signal: AbortSignal) => Promise<Value>,
    signal?: AbortSignal,
  ): Promise<SharedLease<Value>>;
  /** Users and waiters of each key. */
  users(): ReadonlyMap<Key, number>;
}

export interface SharedLease<Value> {
  readonly value: Value;
  /** Resolves when the thing is closed, if this was its last user. A second call does nothing. */
  release(): Promise<void>;
}

interface Entry<Value> {
  readonly value: Promise<Value>;
  /** Aborted when the last user leaves. */
  readonly abandoned: AbortController;
  ended: Promise<void> | undefined;
  users: number;
}

export function createSharedPool<Key, Value>(
  close: (value: Value) => void,
): SharedPool<Key, Value> {
  const entries = new Map<Key, Entry<Value>>();

  const start = (key: Key, open: (signal: AbortSignal) => Promise<Value>) => {
    const before = entries.get(key)?.ended ?? Promise.resolve();
    const abandoned = new AbortController();
    const value = before
      .catch(() => {}) // Its last user was told; this one starts afresh.
      .then(() => {
        abandoned.signal.throwIfAborted();
        return open(abandoned.signal);
      });
    const entry: Entry<Value> = { value, abandoned, ended: undefined, users: 0 };
    entries.set(key, entry);
    return entry;
  };

  const leave = (key: Key, entry: Entry<Value>): Promise<void> => {
    entry.users -= 1;
    if (entry.users > 0) return Promise.resolve();
    entry.abandoned.abort();
    entry.ended = entry.value
      .then(close, () => {}) // Every waiter has seen the failure to open.
      .finally(() => {
        if (entries.get(key) === entry) entries.delete(key);
      });
    return entry.ended;
  };

  return {
    async acquire(key, open, signal) {
      signal?.throwIfAborted();
      const current = entries.get(key);
      const entry =
        current === undefined || current.abandoned.signal.aborted ? start(key, open) : current;
      entry.users += 1;
      let left = false;
      const leaveOnce = async () => {
        if (left) return;
        left = true;
        await leave(key, entry);
      };
      try {
        return { value: await abortable(entry.value, signal), release: leaveOnce };
      } catch (thrown) {
        void leaveOnce().catch(() => {}); // The caller gets the reason that it came here for.
        throw thrown;
      }
    },
    users: () => new Map([...entries].map(([key, entry]) => [key, entry.users])),
  };
}

function abortable<Value>(promise: Promise<Value>, signal: AbortSignal | undefined) {
  if (signal === undefined) return promise;
  return new Promise<Value>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.finally(() => signal.removeEventListener('abort', onAbort)).then(resolve, reject);
  });
}
