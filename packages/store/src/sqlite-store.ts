import { type Clock, readBootId, systemClock } from '@dsec/std';
import { createStoreClock } from './sqlite-clock.ts';
import { openDatabase } from './sqlite-database.ts';
import { createFlusher } from './sqlite-flush.ts';
import { createSqliteKeys } from './sqlite-keys.ts';
import { createSqliteLogs } from './sqlite-logs.ts';
import { createSqliteQueues } from './sqlite-queues.ts';
import { createTransactor, whileBusy } from './sqlite-transactor.ts';
import type { Store } from './store.ts';
import { createWaiters } from './waiters.ts';

export interface SqliteStoreOptions {
  /** The file; SQLite puts `-wal` and `-shm` beside it. On a local file system. */
  readonly path: string;
  readonly clock?: Clock;
  readonly bootId?: string;
  /** Deletions remembered for watchers. */
  readonly tombstonesMax?: number;
  /** Watches, and reads and leases that wait, in this process. */
  readonly waitersMax?: number;
  /** How often to look for changes by other processes while somebody waits. */
  readonly pollMs?: number;
  /** How long an operation waits for another process's lock before it is `unavailable`. */
  readonly busyTimeoutMs?: number;
  readonly pendingWritesMax?: number;
}

/**
 * The store of one machine: a file that any number of its processes may open at once. A write costs
 * one flush to disk, shared with the writes that arrive meanwhile. Errors of opening: see
 * `openDatabase`.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const {
    clock = systemClock,
    bootId = readBootId(),
    tombstonesMax = 4096,
    waitersMax = 4096,
    pollMs = 20,
    busyTimeoutMs = 5000,
    pendingWritesMax = 10_000,
  } = options;
  const db = await whileBusy(busyTimeoutMs, () => openDatabase(options.path));
  const nowMs = await whileBusy(busyTimeoutMs, () => createStoreClock(db, clock, bootId));
  const otherCommits = db.prepare<[], number>('PRAGMA data_version').pluck();
  let seenVersion: number | undefined;
  const changed = () => {
    const version = otherCommits.get();
    const isNew = version !== seenVersion;
    seenVersion = version;
    // Nothing hangs on this write: while somebody waits, the next poll tries again.
    if (keys.expiryDue(nowMs())) void transactor.write(() => {}).catch(() => {});
    return isNew;
  };
  const waiters = createWaiters({ clock, waitersMax, poll: { everyMs: pollMs, changed } });
  const flusher = createFlusher(db, options.path);
  const limits = { busyTimeoutMs, pendingWritesMax };
  const transactor = createTransactor(db, { nowMs, waiters, flusher, ...limits });
  const keys = createSqliteKeys(db, transactor, waiters, tombstonesMax);
  return {
    keys,
    logs: createSqliteLogs(db, transactor, waiters, clock),
    queues: createSqliteQueues(db, transactor, waiters, clock),
    async close() {
      waiters.close();
      await transactor.close();
      await flusher.close();
      db.close();
    },
  };
}
