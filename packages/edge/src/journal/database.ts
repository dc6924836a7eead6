/**
 * What an edge remembers: one SQLite file below its state root, written by one process. Commits are in the
 * write-ahead log before they are acted on, so that they survive the death of the edge; after a loss of
 * power the sandboxes are gone as well, which is why no commit waits for the disk (THREATS §2.1, 10).
 */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { tryLockFile } from '@dsec/linux';
import { type Clock, DsecError, type ErrorCode, MIB, type Random, readBootId } from '@dsec/std';
import Database from 'better-sqlite3';
import { createCheckpoints } from './checkpoints.ts';
import { type JournalTable, migrate } from './schema.ts';

export interface Journal {
  readonly db: Database.Database;
  /** Of this file; another journal in the same place has another one. 16 hex digits. */
  readonly id: string;
  /** Grows with every opening: commands of an older one are refused elsewhere (I2). */
  readonly epoch: number;
  /** Deadlines of rows with another boot id mean nothing (I9). */
  readonly bootId: string;
  /**
   * Runs `fn` whole or not at all. Inside another transaction it joins that one. Throws `storage-full`,
   * `data-loss` and the like for errors of SQLite.
   */
  transaction<T>(fn: () => T): T;
  /**
   * Calls `fn`, which must not throw, once the running transaction is committed, and never when it is
   * rolled back; at once where none runs. In the order of the calls.
   */
  afterCommit(fn: () => void): void;
  close(): void;
}

export interface JournalOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly tables: readonly JournalTable[];
  /** Default: the kernel's. */
  readonly bootId?: string;
}

/** `DsEj` in ASCII: tells journals from other SQLite files. */
const APPLICATION_ID = 0x4473456a;
const JOURNAL_ID_BYTES = 8;
const LOCK_FILE = 'edge.lock';
const JOURNAL_FILE = 'journal.db';

const META: JournalTable = {
  name: 'meta',
  migrations: [
    `CREATE TABLE meta (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      journal_id TEXT NOT NULL,
      epoch INTEGER NOT NULL,
      boot_id TEXT NOT NULL,       -- of the newest opening
      opened_wall_ms INTEGER NOT NULL
    )`,
  ],
};

/**
 * Opens or makes the journal of a state root, which exists, and begins a new epoch. Throws `conflict` while
 * another edge has it open, `unsupported` for a file of another program or a newer version.
 */
export function openJournal(stateRoot: string, options: JournalOptions): Journal {
  const lock = lockRoot(stateRoot);
  try {
    const path = join(stateRoot, JOURNAL_FILE);
    closeSync(openSync(path, 'a', 0o600));
    const db = new Database(path);
    try {
      return prepare(db, path, lock, options);
    } catch (thrown) {
      db.close();
      throw thrown;
    }
  } catch (thrown) {
    closeSync(lock);
    throw journalError(thrown);
  }
}

/** The lock is held by the open file and ends with this process at the latest. */
function lockRoot(stateRoot: string): number {
  const fd = openSync(join(stateRoot, LOCK_FILE), 'a', 0o600);
  if (tryLockFile(fd, 'exclusive')) return fd;
  closeSync(fd);
  throw new DsecError('conflict', `another edge runs on ${stateRoot}`);
}

function prepare(
  db: Database.Database,
  path: string,
  lock: number,
  options: JournalOptions,
): Journal {
  // Nobody else opens it, as the lock says: no locks of SQLite's own, and no memory that is shared.
  db.pragma('locking_mode = EXCLUSIVE');
  db.transaction(() => checkOwner(db)).deferred();
  if (db.pragma('journal_mode = WAL', { simple: true }) !== 'wal') {
    throw new DsecError(
      'unsupported',
      'the file system of the journal cannot hold a write-ahead log',
    );
  }
  // An epoch is never given out twice, not even after a loss of power.
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  db.pragma(`journal_size_limit = ${64 * MIB}`);
  const bootId = options.bootId ?? readBootId();
  const { id, epoch } = db
    .transaction(() => {
      db.pragma(`application_id = ${APPLICATION_ID}`);
      migrate(db, [META, ...options.tables]);
      return beginEpoch(db, bootId, options);
    })
    .immediate();
  db.pragma('synchronous = NORMAL');
  db.pragma('wal_autocheckpoint = 0');
  const checkpoints = createCheckpoints(db, `${path}-wal`, options.clock);
  return {
    ...{ db, id, epoch, bootId },
    ...createTransactions(db, checkpoints.committed),
    close() {
      checkpoints.close();
      db.close();
      closeSync(lock);
    },
  };
}

function checkOwner(db: Database.Database): void {
  const tables = db.prepare<[], number>('SELECT count(*) FROM sqlite_schema').pluck().get();
  if (tables === 0 || db.pragma('application_id', { simple: true }) === APPLICATION_ID) return;
  throw new DsecError('unsupported', 'the journal file is of another program');
}

function beginEpoch(db: Database.Database, bootId: string, { clock, random }: JournalOptions) {
  const fresh = Buffer.from(random.bytes(JOURNAL_ID_BYTES)).toString('hex');
  db.prepare("INSERT OR IGNORE INTO meta VALUES (1, ?, 0, '', 0)").run(fresh);
  return db
    .prepare<[string, number], { id: string; epoch: number }>(
      `UPDATE meta SET epoch = epoch + 1, boot_id = ?, opened_wall_ms = ?
       RETURNING journal_id AS id, epoch`,
    )
    .get(bootId, clock.wallMs()) as { id: string; epoch: number };
}

/** Cheaper than the library's own, which makes a wrapper and a savepoint for each. */
function createTransactions(
  db: Database.Database,
  onCommit: () => void,
): Pick<Journal, 'transaction' | 'afterCommit'> {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  let waiting: (() => void)[] = [];
  return {
    transaction(fn) {
      if (db.inTransaction) return fn();
      let result: ReturnType<typeof fn>;
      try {
        begin.run();
        result = fn();
        commit.run();
      } catch (thrown) {
        waiting = [];
        if (db.inTransaction) rollback.run();
        throw journalError(thrown);
      }
      const committed = waiting;
      waiting = [];
      onCommit();
      for (const listener of committed) listener();
      return result;
    },
    afterCommit(fn) {
      if (db.inTransaction) waiting.push(fn);
      else fn();
    },
  };
}

/** SQLite's result codes, by their beginning, in our terms. */
const CODES: readonly (readonly [prefix: string, code: ErrorCode])[] = [
  ['SQLITE_BUSY', 'conflict'],
  ['SQLITE_FULL', 'storage-full'],
  ['SQLITE_CORRUPT', 'data-loss'],
  ['SQLITE_NOTADB', 'data-loss'],
  ['SQLITE_IOERR', 'unavailable'],
  ['SQLITE_CANTOPEN', 'unavailable'],
  ['SQLITE_READONLY', 'permission-denied'],
];

function journalError(thrown: unknown): unknown {
  if (!(thrown instanceof Database.SqliteError)) return thrown;
  const known = CODES.find(([prefix]) => thrown.code.startsWith(prefix));
  if (known === undefined) return thrown;
  return new DsecError(known[1], `the journal: ${thrown.code}`, { cause: thrown });
}
