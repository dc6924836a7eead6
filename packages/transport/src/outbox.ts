import { DsecError } from '@dsec/std';
import { abortError } from './deadline.ts';

/** What is to be sent. A bounded number of bytes is handed on; further senders wait their turn, in order. */
export interface Outbox<T> {
  /**
   * Resolves when the item is handed on, which may be before it has left the machine. Rejects with
   * `overloaded` when too many senders wait, with the signal's error while it waits, or with the
   * error that ended the connection.
   */
  send(item: T, signal?: AbortSignal): Promise<void>;
  /** Resolves when everything sent so far has been written. Rejects like `send`. */
  flushed(signal?: AbortSignal): Promise<void>;
  fail(error: DsecError): void;
  /** Handed on and not yet written. */
  readonly bytes: number;
}

export interface OutboxOptions<T> {
  readonly bytesMax: number;
  readonly sendersMax: number;
  /** Starts to write the item and returns its size; `done` says, later, that it is written or why not. */
  write(item: T, done: (failure?: Error | null) => void): number;
}

interface Waiting {
  resolve(): void;
  reject(error: unknown): void;
}

export function createOutbox<T>(options: OutboxOptions<T>): Outbox<T> {
  const senders = new Map<Waiting, T>();
  const flushers = new Set<Waiting>();
  let bytes = 0;
  let failure: DsecError | undefined;

  const write = (item: T) => {
    let size = 0;
    size = options.write(item, (cause) => {
      bytes -= size;
      if (cause) fail(new DsecError('unavailable', 'the connection was lost', { cause }));
      admitSenders();
    });
    bytes += size;
  };
  const admitSenders = () => {
    for (const [sender, item] of senders) {
      if (bytes >= options.bytesMax) return;
      senders.delete(sender);
      try {
        write(item);
        sender.resolve();
      } catch (thrown) {
        sender.reject(thrown);
      }
    }
    if (bytes > 0) return;
    for (const flusher of flushers) flusher.resolve();
    flushers.clear();
  };
  const fail = (error: DsecError) => {
    if (failure !== undefined) return;
    failure = error;
    for (const waiting of [...senders.keys(), ...flushers]) waiting.reject(error);
    senders.clear();
    flushers.clear();
  };

  return {
    async send(item, signal) {
      if (failure !== undefined) throw failure;
      if (signal?.aborted) throw abortError(signal);
      if (senders.size === 0 && bytes < options.bytesMax) return write(item);
      if (senders.size >= options.sendersMax) {
        throw new DsecError('overloaded', `${options.sendersMax} sends wait already`);
      }
      await waitUntil(
        signal,
        (sender) => senders.set(sender, item),
        (sender) => senders.delete(sender),
      );
    },
    async flushed(signal) {
      if (failure !== undefined) throw failure;
      if (bytes === 0 && senders.size === 0) return;
      await waitUntil(
        signal,
        (flusher) => flushers.add(flusher),
        (flusher) => flushers.delete(flusher),
      );
    },
    fail,
    get bytes() {
      return bytes;
    },
  };
}

function waitUntil(
  signal: AbortSignal | undefined,
  enter: (waiting: Waiting) => void,
  leave: (waiting: Waiting) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(abortError(signal));
    const onAbort = () => {
      leave(waiting);
      reject(abortError(signal));
    };
    const waiting: Waiting = {
      resolve() {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      },
      reject(error) {
        signal?.removeEventListener('abort', onAbort);
        reject(error);
      },
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    enter(waiting);
  });
}
