import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DsecError, MIB, systemClock } from '@dsec/std';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openDatabase, type Sqlite } from '../src/sqlite-database.ts';
import { createTransactor, type Transactor } from '../src/sqlite-transactor.ts';
import { createWaiters } from '../src/waiters.ts';

let directory: string;
let db: Sqlite;
let transactor: Transactor;
let commits: number;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dsec-store-'));
  db = openDatabase(join(directory, 'store.db'));
  db.exec('CREATE TABLE t (a, b BLOB)');
  transactor = createTransactor(db, {
    nowMs: () => 0,
    waiters: createWaiters({ clock: systemClock, waitersMax: 1 }),
    busyTimeoutMs: 100,
    pendingWritesMax: 500,
  });
  commits = 0;
  transactor.housekeep(() => {
    commits += 1;
  });
});
afterEach(async () => {
  await transactor.close();
  db.close();
  rmSync(directory, { recursive: true });
});

const insert = (a: number, size = 0) =>
  transactor.write(
    () => db.prepare('INSERT INTO t VALUES (?, ?)').run(a, Buffer.alloc(size)),
    size,
  );
const stored = () => db.prepare('SELECT a FROM t ORDER BY a').pluck().all();

it('flushes every commit to disk', () => {
  expect(db.pragma('synchronous', { simple: true })).toBe(2);
  expect(db.pragma('journal_mode', { simple: true })).toBe('wal');
});

it('shares one commit between writes that wait together', async () => {
  await Promise.all(Array.from({ length: 200 }, (_, i) => insert(i)));
  expect(stored()).toHaveLength(200);
  expect(commits).toBe(1);
});

it('refuses one write without harm to the others of its commit', async () => {
  const refusal = new DsecError('conflict', 'no');
  const writes = [
    insert(1),
    transactor.write(() => {
      throw refusal;
    }),
    insert(2),
  ];
  const outcomes = await Promise.allSettled(writes);
  expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(outcomes[1]).toMatchObject({ reason: refusal });
  expect(stored()).toEqual([1, 2]);
});

it('undoes the whole commit when the database fails, and says so to all of it', async () => {
  const writes = [insert(1), transactor.write(() => db.exec('INSERT INTO nowhere VALUES (1)'))];
  const outcomes = await Promise.allSettled(writes);
  expect(outcomes).toMatchObject([
    { status: 'rejected', reason: { code: 'internal' } },
    { status: 'rejected', reason: { code: 'internal' } },
  ]);
  expect(stored()).toEqual([]);
  await insert(3);
  expect(stored()).toEqual([3]);
});

it('reports a full disk as storage-full and recovers when there is room', async () => {
  const pages = db.pragma('page_count', { simple: true }) as number;
  db.pragma(`max_page_count = ${pages + 10}`);
  await expect(insert(1, 100_000)).rejects.toMatchObject({ code: 'storage-full' });
  expect(stored()).toEqual([]);
  db.pragma(`max_page_count = ${pages + 100}`);
  await insert(2, 100_000);
  expect(stored()).toEqual([2]);
});

it('bounds the writes that wait, by number and by bytes', async () => {
  const writes = Array.from({ length: 501 }, (_, i) => insert(i));
  await expect(writes.pop()).rejects.toMatchObject({ code: 'overloaded' });
  await Promise.all(writes);
  const large = Array.from({ length: 9 }, (_, i) => transactor.write(() => i, 8 * MIB));
  await expect(large.pop()).rejects.toMatchObject({ code: 'overloaded' });
  expect(await Promise.all(large)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

it('finishes what waits when it closes, and refuses the rest', async () => {
  const write = insert(1);
  await transactor.close();
  await write;
  await expect(insert(2)).rejects.toMatchObject({ code: 'unavailable' });
  await expect(transactor.read(() => 1)).rejects.toMatchObject({ code: 'unavailable' });
  expect(stored()).toEqual([1]);
});
