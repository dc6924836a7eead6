import { setImmediate as nextTurn } from 'node:timers/promises';
import { asDsecError, DsecError, MIB, systemClock } from '@dsec/std';
import { storeClosed } from './refusals.ts';
import { isBusy, type Sqlite, sqliteError } from './sqlite-database.ts';
import type { Flusher } from './sqlite-flush.ts';
import type { Waiters } from './waiters.ts';

/**
 * One write operation inside a transaction. It checks first and writes after: what it throws leaves
 * nothing behind.
 */
export interface WriteScope {
  readonly nowMs: number;
  nextRevision(): number;
  /** Wakes those who wait for this topic, once the transaction is durable. */
  touch(topic: string): void;
}

export interface Transactor {
  /**
   * Runs the operation in a transaction and resolves when that is durable. `bytes` is the size of
   * its value. `onCommitted` is called before the flush, unless the operation has thrown.
   */
  write<T>(
    operation: (scope: WriteScope) => T,
    bytes?: number,
    onCommitted?: () => void,
  ): Promise<T>;
  /** Runs the operation on one consistent state, and resolves when that is durable. */
  read<T>(operation: (nowMs: number) => T): Promise<T>;
  /** The same for an operation of one statement, which needs no transaction around it. */
  readOne<T>(operation: (nowMs: number) => T): Promise<T>;
  /** The same without waiting for the disk: a loss of power may undo what it saw. */
  readUnflushed<T>(operation: (nowMs: number) => T): Promise<T>;
  /** Adds a step that begins every write transaction. */
  housekeep(step: (scope: WriteScope) => void): void;
  close(): Promise<void>;
}

export interface TransactorOptions {
  readonly flusher: Pick<Flusher, 'flush' | 'flushSeen' | 'assertWhole'>;
  readonly nowMs: () => number;
  readonly waiters: Waiters;
  /** How long an operation waits for another process's lock. */
  readonly busyTimeoutMs: number;
  readonly pendingWritesMax: number;
}

interface PendingWrite {
  readonly bytes: number;
  readonly operation: (scope: WriteScope) => unknown;
  readonly onCommitted: (() => void) | undefined;
  resolve(value: unknown): void;
  reject(reason: unknown): void;
}

const PENDING_BYTES_MAX = 64 * MIB;
const BATCH_WRITES_MAX = 256;
const BATCH_BYTES_MAX = 4 * MIB;
const BUSY_RETRY_MS = 5;

/**
 * Group commit: writes that arrive while a flush to disk runs share the next one. Nothing between BEGIN and
 * COMMIT gives up the thread, so readers on the same connection never see half a batch.
 */
export function createTransactor(db: Sqlite, options: TransactorOptions): Transactor {
  const { pendingWritesMax, busyTimeoutMs, flusher } = options;
  const pending: PendingWrite[] = [];
  const steps: ((scope: WriteScope) => void)[] = [];
  const runBatch = createBatchRunner(db, options, steps);
  let pendingBytes = 0;
  let flushing: Promise<void> | undefined;
  let open = true;

  const takeBatch = (): PendingWrite[] => {
    let bytes = 0;
    let count = 0;
    for (const { bytes: more } of pending.slice(0, BATCH_WRITES_MAX)) {
      if (count > 0 && bytes + more > BATCH_BYTES_MAX) break;
      bytes += more;
      count += 1;
    }
    pendingBytes -= bytes;
    return pending.splice(0, count);
  };
  const flush = async () => {
    while (pending.length > 0) {
      await nextTurn();
      const batch = takeBatch();
      try {
        flusher.assertWhole();
        const { committed, settle } = await whileBusy(busyTimeoutMs, () => runBatch(batch));
        const flushed = flusher.flush();
        committed();
        await flushed;
        settle();
      } catch (thrown) {
        const error = asDsecError(thrown);
        for (const write of batch) write.reject(error);
      }
    }
    flushing = undefined;
  };

  return {
    write<T>(operation: (scope: WriteScope) => T, bytes = 0, onCommitted?: () => void) {
      if (!open) return Promise.reject(storeClosed());
      if (pending.length >= pendingWritesMax || pendingBytes + bytes > PENDING_BYTES_MAX) {
        return Promise.reject(new DsecError('overloaded', 'too many writes wait for the store'));
      }
      return new Promise<T>((resolve, reject) => {
        const settlers = { resolve: resolve as (value: unknown) => void, reject };
        pending.push({ bytes, operation, onCommitted, ...settlers });
        pendingBytes += bytes;
        flushing ??= flush();
      });
    },
    ...createReads(db, options, () => open),
    housekeep(step) {
      steps.push(step);
    },
    async close() {
      open = false;
      await flushing;
    },
  };
}

function createReads(
  db: Sqlite,
  { flusher, busyTimeoutMs, nowMs }: TransactorOptions,
  isOpen: () => boolean,
): Pick<Transactor, 'read' | 'readOne' | 'readUnflushed'> {
  const readUnflushed = <T>(operation: (nowMs: number) => T): Promise<T> =>
    whileBusy(busyTimeoutMs, () => {
      if (!isOpen()) throw storeClosed();
      flusher.assertWhole();
      return operation(nowMs());
    });
  const readOne = async <T>(operation: (nowMs: number) => T): Promise<T> => {
    const value = await readUnflushed(operation);
    await flusher.flushSeen();
    return value;
  };
  return {
    read: (operation) => readOne((nowMs) => db.transaction(() => operation(nowMs))()),
    ...{ readOne, readUnflushed },
  };
}

/**
 * Runs one batch as one transaction. Returns what tells its writes that they are committed, and what answers
 * them once they are durable; throws, with nothing done, when the transaction fails.
 */
function createBatchRunner(
  db: Sqlite,
  options: TransactorOptions,
  steps: readonly ((scope: WriteScope) => void)[],
): (batch: readonly PendingWrite[]) => { committed(): void; settle(): void } {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  const readRevision = db.prepare<[], number>('SELECT revision FROM store').pluck();
  const saveRevision = db.prepare('UPDATE store SET revision = ?, seen_ms = ?');

  const runAll = (batch: readonly PendingWrite[], touched: Set<string>) => {
    const before = readRevision.get() ?? 0;
    let revision = before;
    const scope: WriteScope = {
      nowMs: options.nowMs(),
      nextRevision() {
        revision += 1;
        return revision;
      },
      touch: (topic) => touched.add(topic),
    };
    for (const step of steps) step(scope);
    const settled = batch.map((write) => runOne(write, scope));
    if (revision !== before) saveRevision.run(revision, scope.nowMs);
    return settled;
  };

  return (batch) => {
    const touched = new Set<string>();
    begin.run();
    let settled: readonly SettledWrite[];
    try {
      settled = runAll(batch, touched);
      commit.run();
    } catch (thrown) {
      if (db.inTransaction) rollback.run();
      throw thrown;
    }
    return {
      committed() {
        for (const { onCommitted } of settled) onCommitted?.();
      },
      settle() {
        for (const { settle } of settled) settle();
        for (const topic of touched) options.waiters.wake(topic);
      },
    };
  };
}

interface SettledWrite {
  readonly onCommitted: (() => void) | undefined;
  settle(): void;
}

/**
 * How to answer a write, once the transaction is durable. A refusal concerns this write alone, any
 * other error all.
 */
function runOne(write: PendingWrite, scope: WriteScope): SettledWrite {
  try {
    const value = write.operation(scope);
    return { onCommitted: write.onCommitted, settle: () => write.resolve(value) };
  } catch (thrown) {
    if (!(thrown instanceof DsecError)) throw thrown;
    return { onCommitted: undefined, settle: () => write.reject(thrown) };
  }
}

/** Tries again while another process holds the lock, without blocking the thread; then `unavailable`. */
export async function whileBusy<T>(timeoutMs: number, attempt: () => T): Promise<T> {
  const deadlineMs = systemClock.monotonicMs() + timeoutMs;
  for (;;) {
    try {
      return attempt();
    } catch (thrown) {
      if (!isBusy(thrown) || systemClock.monotonicMs() >= deadlineMs) throw sqliteError(thrown);
    }
    await systemClock.sleep(BUSY_RETRY_MS);
  }
}
