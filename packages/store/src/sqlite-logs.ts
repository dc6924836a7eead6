import type { Clock } from '@dsec/std';
import { checkName, checkPosition, checkValue, checkWait, pageLimit } from './checks.ts';
import { logMoved, logTrimmed } from './refusals.ts';
import { bytesOf, type Sqlite } from './sqlite-database.ts';
import type { Transactor } from './sqlite-transactor.ts';
import { type LogEntry, type LogStore, PAGE_BYTES_MAX } from './store.ts';
import { lookAndWait, type Waiters } from './waiters.ts';

/** Entries removed in one transaction, so that trimming a long log does not hold up other writers. */
const REMOVALS_PER_WRITE = 1000;

const topicOf = (log: string) => `log:${log}`;

export function createSqliteLogs(
  db: Sqlite,
  transactor: Transactor,
  waiters: Waiters,
  clock: Clock,
): LogStore {
  const sql = prepareStatements(db);
  return {
    async append(log, value, options) {
      checkName(log, 'log');
      checkValue(value);
      const expectLast = options?.expectLast;
      if (expectLast !== undefined) checkPosition('expectLast', expectLast);
      const copy = value.slice();
      return transactor.write((scope) => {
        const last = sql.log.get(log)?.last ?? 0;
        if (expectLast !== undefined && expectLast !== last) throw logMoved(log, last);
        const sequence = scope.nextRevision();
        sql.append.run(sequence, log, copy);
        sql.saveLast.run(log, sequence);
        scope.touch(topicOf(log));
        return sequence;
      }, copy.byteLength);
    },
    async read(log, options) {
      checkName(log, 'log');
      checkPosition('after', options.after);
      checkWait('waitMs', options.waitMs);
      const limit = pageLimit(options.limit);
      const { after, waitMs = 0, signal } = options;
      return lookAndWait(waiters, clock, { topic: topicOf(log), waitMs, signal }, async () => {
        const found = await transactor.read(() => {
          const trimmedThrough = sql.log.get(log)?.trimmed_through ?? 0;
          if (after < trimmedThrough) throw logTrimmed(log, trimmedThrough);
          return fillPage(sql.after.iterate(log, after, limit));
        });
        return { found, dueInMs: Number.POSITIVE_INFINITY };
      });
    },
    ...logRemovals(sql, transactor),
  };
}

function logRemovals(
  sql: LogSql,
  transactor: Transactor,
): Pick<LogStore, 'bounds' | 'trim' | 'remove'> {
  const bounds = async (log: string) => {
    checkName(log, 'log');
    const row = await transactor.read(() => sql.log.get(log));
    return { last: row?.last ?? 0, trimmedThrough: row?.trimmed_through ?? 0 };
  };
  /** Returns how many entries it removed. */
  const trimSome = (log: string, through: number): Promise<number> =>
    transactor.write((scope) => {
      const last = sql.log.get(log)?.last ?? 0;
      const doomed = sql.upTo.all(log, Math.min(through, last - 1), REMOVALS_PER_WRITE);
      const newest = doomed.at(-1);
      if (newest === undefined) return 0;
      sql.removeUpTo.run(log, newest);
      sql.saveTrimmed.run(newest, log);
      scope.touch(topicOf(log));
      return doomed.length;
    });
  const trim = async (log: string, through: number) => {
    checkName(log, 'log');
    checkPosition('through', through);
    while ((await trimSome(log, through)) === REMOVALS_PER_WRITE);
  };
  return {
    bounds,
    trim,
    async remove(log) {
      await trim(log, (await bounds(log)).last);
      await transactor.write(() => {
        sql.removeUpTo.run(log, Number.MAX_SAFE_INTEGER);
        sql.forget.run(log);
      });
    },
  };
}

type LogSql = ReturnType<typeof prepareStatements>;

function prepareStatements(db: Sqlite) {
  return {
    log: db.prepare<[string], { last: number; trimmed_through: number }>(
      'SELECT last, trimmed_through FROM logs WHERE name = ?',
    ),
    append: db.prepare('INSERT INTO log_entries (sequence, log, value) VALUES (?, ?, ?)'),
    saveLast: db.prepare(
      `INSERT INTO logs (name, last, trimmed_through) VALUES (?, ?, 0)
       ON CONFLICT (name) DO UPDATE SET last = excluded.last`,
    ),
    after: db.prepare<[string, number, number], { sequence: number; value: Buffer }>(
      `SELECT sequence, value FROM log_entries
       WHERE log = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
    ),
    upTo: db
      .prepare<[string, number, number], number>(
        'SELECT sequence FROM log_entries WHERE log = ? AND sequence <= ? ORDER BY sequence LIMIT ?',
      )
      .pluck(),
    removeUpTo: db.prepare('DELETE FROM log_entries WHERE log = ? AND sequence <= ?'),
    saveTrimmed: db.prepare('UPDATE logs SET trimmed_through = ? WHERE name = ?'),
    forget: db.prepare('DELETE FROM logs WHERE name = ?'),
  };
}

function fillPage(rows: Iterable<{ sequence: number; value: Buffer }>): readonly LogEntry[] {
  const entries: LogEntry[] = [];
  let bytes = 0;
  for (const { sequence, value } of rows) {
    bytes += value.byteLength;
    if (entries.length > 0 && bytes > PAGE_BYTES_MAX) break;
    entries.push({ sequence, value: bytesOf(value) });
  }
  return entries;
}
