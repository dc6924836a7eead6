import { closeSync, openSync } from 'node:fs';
import { DsecError, type ErrorCode, MIB } from '@dsec/std';
import Database from 'better-sqlite3';

export type Sqlite = Database.Database;

/** `DSec` in ASCII: tells our files from other SQLite files. */
const APPLICATION_ID = 0x44536563;
const SCHEMA_VERSION = 1;
/** SQLite waits this long on its own, blocking the thread; longer waits are ours and do not block. */
const BLOCKING_WAIT_MS = 10;

const SCHEMA = `
CREATE TABLE store (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  revision INTEGER NOT NULL,           -- the newest given out
  compacted_through INTEGER NOT NULL,  -- tombstones up to here are forgotten
  boot_id TEXT NOT NULL,               -- the boot in which the two times below are comparable
  base_monotonic_ms INTEGER NOT NULL,  -- reading of the monotonic clock at ...
  base_store_ms INTEGER NOT NULL,      -- ... this time of the store's clock
  seen_ms INTEGER NOT NULL             -- the store's clock at the newest write
);
INSERT INTO store VALUES (1, 0, 0, '', 0, 0, 0);

-- The newest state of every key. A watch is a scan by rowid. gone: NULL, 'deleted' or 'expired', then it
-- is a tombstone.
CREATE TABLE keys (
  revision INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  value BLOB NOT NULL,
  expires_at_ms INTEGER,
  gone TEXT
);
CREATE INDEX keys_expiring ON keys (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
CREATE INDEX keys_gone ON keys (revision) WHERE gone IS NOT NULL;

CREATE TABLE logs (
  name TEXT PRIMARY KEY,
  last INTEGER NOT NULL,
  trimmed_through INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE log_entries (sequence INTEGER PRIMARY KEY, log TEXT NOT NULL, value BLOB NOT NULL);
CREATE INDEX log_entries_of ON log_entries (log, sequence);

CREATE TABLE queues (
  name TEXT PRIMARY KEY,
  lease_ms INTEGER NOT NULL,
  deliveries_max INTEGER NOT NULL,
  depth_max INTEGER NOT NULL,
  dead_max INTEGER NOT NULL,
  depth INTEGER NOT NULL,
  dead_dropped INTEGER NOT NULL
) WITHOUT ROWID;
-- Values stand apart, because a lease changes the item's row and would write a large value again each time.
CREATE TABLE queue_items (
  sequence INTEGER PRIMARY KEY,
  queue TEXT NOT NULL,
  dead INTEGER NOT NULL,
  available_at_ms INTEGER NOT NULL,    -- of a dead letter: when it died
  deliveries INTEGER NOT NULL,
  token TEXT                           -- NULL: not leased
);
CREATE INDEX queue_items_next ON queue_items (queue, dead, available_at_ms, sequence);
CREATE INDEX queue_items_leased ON queue_items (queue, available_at_ms, deliveries, sequence)
  WHERE token IS NOT NULL;
CREATE TABLE queue_values (sequence INTEGER PRIMARY KEY, value BLOB NOT NULL);
`;

/**
 * Opens or makes the database file, readable by its owner only. A commit survives the end of the process at
 * once, and power loss once it is flushed (see `createFlusher`). Throws `unsupported` (a newer schema,
 * another program's file, a file system without WAL) and SQLite's own errors, of which `isBusy` ones are
 * worth another attempt.
 */
export function openDatabase(path: string): Sqlite {
  closeSync(openSync(path, 'a', 0o600));
  const db = new Database(path, { timeout: BLOCKING_WAIT_MS });
  try {
    prepare(db);
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

function prepare(db: Sqlite): void {
  // Before the first write: a file of somebody else stays as it is. In one transaction, because
  // another process may be making the same file at this moment.
  db.transaction(() => checkOwner(db)).deferred();
  if (db.pragma('journal_mode = WAL', { simple: true }) !== 'wal') {
    throw new DsecError(
      'unsupported',
      'the file system of the store cannot hold a write-ahead log',
    );
  }
  db.pragma('synchronous = NORMAL');
  db.pragma(`journal_size_limit = ${64 * MIB}`);
  db.transaction(() => {
    if (checkOwner(db) === 'ours') return;
    db.exec(SCHEMA);
    db.pragma(`application_id = ${APPLICATION_ID}`);
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
  }).immediate();
}

/** Throws `unsupported` when the file is of another program or version. */
function checkOwner(db: Sqlite): 'ours' | 'empty' {
  const version = db.pragma('user_version', { simple: true });
  const application = db.pragma('application_id', { simple: true });
  if (version === 0 && isEmpty(db)) return 'empty';
  if (application === APPLICATION_ID && version === SCHEMA_VERSION) return 'ours';
  throw new DsecError('unsupported', 'the store file is of another program or version');
}

function isEmpty(db: Sqlite): boolean {
  return db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get() === 0;
}

/** Whether SQLite refused because another process holds the lock, which a later attempt may get. */
export function isBusy(thrown: unknown): boolean {
  const code = sqliteCode(thrown);
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}

/** SQLite's result codes, by their beginning, in the terms of the seam. */
const CODES: readonly (readonly [prefix: string, code: ErrorCode])[] = [
  ['SQLITE_BUSY', 'unavailable'],
  ['SQLITE_LOCKED', 'unavailable'],
  ['SQLITE_FULL', 'storage-full'],
  ['SQLITE_CORRUPT', 'data-loss'],
  ['SQLITE_NOTADB', 'data-loss'],
  // Whether a write whose flush failed is there after all, nobody can say.
  ['SQLITE_IOERR', 'unavailable'],
  ['SQLITE_CANTOPEN', 'unavailable'],
  ['SQLITE_READONLY', 'permission-denied'],
];

/** An error of SQLite as a `DsecError`; anything else unchanged. */
export function sqliteError(thrown: unknown): unknown {
  const sqlite = sqliteCode(thrown);
  const known = CODES.find(([prefix]) => sqlite.startsWith(prefix));
  if (known === undefined) return thrown;
  return new DsecError(known[1], `the store file: ${sqlite}`, { cause: thrown });
}

function sqliteCode(thrown: unknown): string {
  return thrown instanceof Database.SqliteError ? thrown.code : '';
}

/** A view of the bytes that does not tie the seam to Node's Buffer. */
export function bytesOf(blob: Buffer): Uint8Array {
  return new Uint8Array(blob.buffer, blob.byteOffset, blob.byteLength);
}
