import {
  checkAfter,
  checkKeyWrite,
  checkName,
  checkPosition,
  checkPrefix,
  pageLimit,
} from './checks.ts';
import { keyChanged, keyExists } from './refusals.ts';
import { bytesOf, type Sqlite } from './sqlite-database.ts';
import type { Transactor, WriteScope } from './sqlite-transactor.ts';
import {
  type KeyChange,
  type KeyEntry,
  type KeyStore,
  type KeyWriteOptions,
  PAGE_BYTES_MAX,
} from './store.ts';
import type { Waiters } from './waiters.ts';

const TOPIC = 'keys';
const CHANGES_PER_READ = 256;
const EXPIRIES_PER_WRITE = 256;

interface Row {
  readonly key: string;
  readonly revision: number;
  readonly value: Buffer;
  readonly gone: 'deleted' | 'expired' | null;
}

export interface SqliteKeys extends KeyStore {
  /** Whether some key's time has come that no write transaction has seen yet. */
  expiryDue(nowMs: number): boolean;
}

export function createSqliteKeys(
  db: Sqlite,
  transactor: Transactor,
  waiters: Waiters,
  tombstonesMax: number,
): SqliteKeys {
  const sql = prepareStatements(db);
  transactor.housekeep((scope) => {
    const expired = sql.expired.all(scope.nowMs, EXPIRIES_PER_WRITE);
    for (const key of expired) bury(sql, scope, key, 'expired');
    if (expired.length > 0) compact(sql, tombstonesMax);
  });
  return {
    ...keyReads(sql, transactor, waiters),
    ...keyWrites(sql, transactor),
    async delete(key, revision) {
      checkName(key, 'key');
      if (revision !== undefined) checkPosition('revision', revision);
      await transactor.write((scope) => {
        const found = sql.revision.get(key, scope.nowMs);
        if (revision !== undefined && found !== revision) throw keyChanged(key, revision, found);
        if (found === undefined) return;
        bury(sql, scope, key, 'deleted');
        compact(sql, tombstonesMax);
      });
    },
    expiryDue: (nowMs) => sql.expired.get(nowMs, 1) !== undefined,
  };
}

function keyReads(
  sql: KeySql,
  transactor: Transactor,
  waiters: Waiters,
): Pick<KeyStore, 'get' | 'list' | 'watch'> {
  return {
    async get(key, { allowUnflushed = false } = {}) {
      checkName(key, 'key');
      const find = (nowMs: number) => sql.get.get(key, nowMs);
      const row = await (allowUnflushed
        ? transactor.readUnflushed(find)
        : transactor.readOne(find));
      return row === undefined ? undefined : entryOf(row);
    },
    async list(prefix, options) {
      checkPrefix(prefix);
      checkAfter(options?.after, prefix);
      const limit = pageLimit(options?.limit);
      const after = options?.after ?? prefix;
      return transactor.read((nowMs) => {
        const rows = sql.list.iterate(after, endOf(prefix), nowMs, limit + 1);
        return { ...fillPage(rows, limit), revision: sql.head.get()?.revision ?? 0 };
      });
    },
    watch(prefix, { afterRevision, signal }) {
      checkPrefix(prefix);
      checkPosition('afterRevision', afterRevision);
      const readChanges = (position: number) =>
        transactor.read(() => ({
          head: sql.head.get() ?? { revision: 0, compacted_through: 0 },
          ...takeChanges(sql.changes.iterate(position, prefix, endOf(prefix), CHANGES_PER_READ)),
        }));
      return watch(readChanges, waiters, afterRevision, signal);
    },
  };
}

function keyWrites(
  sql: KeySql,
  transactor: Transactor,
): Pick<KeyStore, 'create' | 'put' | 'compareAndSet'> {
  /** Stores the value unless `refuse`, which is told the revision that is there, throws. */
  const write = async (
    key: string,
    value: Uint8Array,
    options: KeyWriteOptions | undefined,
    refuse: (found: number | undefined) => void,
  ) => {
    checkKeyWrite(key, value, options);
    const copy = value.slice();
    const { ttlMs, onCarriedOut } = options ?? {};
    const operation = (scope: WriteScope) => {
      refuse(sql.revision.get(key, scope.nowMs));
      const revision = scope.nextRevision();
      sql.replace.run(revision, key, copy, ttlMs === undefined ? null : scope.nowMs + ttlMs, null);
      scope.touch(TOPIC);
      return revision;
    };
    return transactor.write(operation, copy.byteLength, onCarriedOut);
  };
  return {
    create: (key, value, options) =>
      write(key, value, options, (found) => {
        if (found !== undefined) throw keyExists(key, found);
      }),
    put: (key, value, options) => write(key, value, options, () => {}),
    async compareAndSet(key, value, revision, options) {
      checkPosition('revision', revision);
      return write(key, value, options, (found) => {
        if (found !== revision) throw keyChanged(key, revision, found);
      });
    },
  };
}

function bury(sql: KeySql, scope: WriteScope, key: string, reason: 'deleted' | 'expired'): void {
  sql.replace.run(scope.nextRevision(), key, new Uint8Array(), null, reason);
  scope.touch(TOPIC);
}

function compact(sql: KeySql, tombstonesMax: number): void {
  const through = sql.oldestSpareTombstone.get(tombstonesMax);
  if (through === undefined) return;
  sql.forgetTombstones.run(through);
  sql.saveCompacted.run(through);
}

type KeySql = ReturnType<typeof prepareStatements>;

function prepareStatements(db: Sqlite) {
  const live = 'gone IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > ?)';
  return {
    get: db.prepare<[string, number], Row>(
      `SELECT key, revision, value, gone FROM keys WHERE key = ? AND ${live}`,
    ),
    revision: db
      .prepare<[string, number], number>(`SELECT revision FROM keys WHERE key = ? AND ${live}`)
      .pluck(),
    replace: db.prepare(
      'INSERT OR REPLACE INTO keys (revision, key, value, expires_at_ms, gone) VALUES (?, ?, ?, ?, ?)',
    ),
    list: db.prepare<[string, string, number, number], Row>(
      `SELECT key, revision, value, gone FROM keys
       WHERE key > ? AND key < ? AND ${live} ORDER BY key LIMIT ?`,
    ),
    // The unary plus keeps the planner on the scan by revision, which ends at once near the head.
    changes: db.prepare<[number, string, string, number], Row>(
      `SELECT key, revision, value, gone FROM keys
       WHERE revision > ? AND +key >= ? AND +key < ? ORDER BY revision LIMIT ?`,
    ),
    head: db.prepare<[], { revision: number; compacted_through: number }>(
      'SELECT revision, compacted_through FROM store',
    ),
    expired: db
      .prepare<[number, number], string>(
        'SELECT key FROM keys WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?',
      )
      .pluck(),
    oldestSpareTombstone: db
      .prepare<[number], number>(
        'SELECT revision FROM keys WHERE gone IS NOT NULL ORDER BY revision DESC LIMIT 1 OFFSET ?',
      )
      .pluck(),
    forgetTombstones: db.prepare('DELETE FROM keys WHERE gone IS NOT NULL AND revision <= ?'),
    saveCompacted: db.prepare('UPDATE store SET compacted_through = ?'),
  };
}

/** The first string after all keys below the prefix; key characters sort before DEL, and `0` follows `/`. */
function endOf(prefix: string): string {
  return prefix === '' ? '\x7f' : `${prefix.slice(0, -1)}0`;
}

function entryOf(row: Row): KeyEntry {
  return { key: row.key, value: bytesOf(row.value), revision: row.revision };
}

/** As many changes as fit; `more` says that another read may find further ones. */
function takeChanges(found: Iterable<Row>): { rows: readonly Row[]; more: boolean } {
  const rows: Row[] = [];
  let bytes = 0;
  for (const row of found) {
    rows.push(row);
    bytes += row.value.byteLength;
    if (rows.length === CHANGES_PER_READ || bytes >= PAGE_BYTES_MAX) return { rows, more: true };
  }
  return { rows, more: false };
}

function fillPage(rows: Iterable<Row>, limit: number) {
  const entries: KeyEntry[] = [];
  let bytes = 0;
  for (const row of rows) {
    bytes += row.value.byteLength;
    if (entries.length > 0 && (entries.length === limit || bytes > PAGE_BYTES_MAX)) {
      return { entries, next: entries.at(-1)?.key };
    }
    entries.push(entryOf(row));
  }
  return { entries, next: undefined };
}

async function* watch(
  readChanges: (position: number) => Promise<{
    readonly head: { readonly revision: number; readonly compacted_through: number };
    readonly rows: readonly Row[];
    readonly more: boolean;
  }>,
  waiters: Waiters,
  afterRevision: number,
  signal: AbortSignal,
): AsyncGenerator<KeyChange> {
  let position = afterRevision;
  while (!signal.aborted) {
    const { ticks } = waiters;
    const { head, rows, more } = await readChanges(position);
    if (position < head.compacted_through) {
      position = head.revision;
      yield { type: 'resync', revision: position };
      continue;
    }
    for (const row of rows) {
      if (signal.aborted) return;
      position = row.revision;
      yield changeOf(row);
    }
    if (more) continue;
    position = Math.max(position, head.revision);
    await waiters.wait(TOPIC, { ticks, timeoutMs: Number.POSITIVE_INFINITY, signal });
  }
}

function changeOf(row: Row): KeyChange {
  return row.gone === null
    ? { type: 'put', ...entryOf(row) }
    : { type: 'gone', key: row.key, revision: row.revision, reason: row.gone };
}
