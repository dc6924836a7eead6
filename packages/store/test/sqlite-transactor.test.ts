import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DsecError, MIB, systemClock } from '@dsec/std';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openDatabase, type Sqlite } from '../src/sqlite-database.ts';
import { createFlusher, type Flusher } from '../src/sqlite-flush.ts';
import { createTransactor, type Transactor } from '../src/sqlite-transactor.ts';
import { createWaiters } from '../src/waiters.ts';

let directory: string;
let db: Sqlite;
let transactor: Transactor;
let flusher: Flusher;
let flushLog: () => Promise<void>;
let commits: number;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dsec-store-'));
  flushLog = async () => {};
  db = openDatabase(join(directory, 'store.db'));
  db.exec('CREATE TABLE t (a, b BLOB)');
  flusher = createFlusher(db, join(directory, 'store.db'), () => flushLog());
  transactor = createTransactor(db, {
    flusher,
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
  await flusher.close();
  db.close();
  rmSync(directory, { recursive: true });
});

const insert = (a: number, size = 0) =>
  transactor.write(
    () => db.prepare('INSERT INTO t VALUES (?, ?)').run(a, Buffer.alloc(size)),
    size,
  );
const stored = () => db.prepare('SELECT a FROM t ORDER BY a').pluck().all();

it('answers a write, and a read of it, once the log is flushed', async () => {
  let finish = () => {};
  flushLog = () =>
    new Promise<void>((resolve) => {
      finish = resolve;
    });
  const answered: string[] = [];
  const writing = insert(1).then(() => answered.push('write'));
  while (stored().length === 0) await new Promise((resolve) => setImmediate(resolve));
  const reading = transactor.readOne(stored).then(() => answered.push('read'));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(answered).toEqual([]);
  finish();
  await writing;
  flushLog = async () => {};
  finish();
  await reading;
  expect(answered.toSorted()).toEqual(['read', 'write']);
});

it('tells that a write is committed, and lets it be read, before the log is flushed', async () => {
  let finish = () => {};
  flushLog = () =>
    new Promise<void>((resolve) => {
      finish = resolve;
    });
  const told: string[] = [];
  const committed = new Promise<void>((resolve) => {
    const write = () => db.prepare('INSERT INTO t VALUES (1, NULL)').run();
    const onCommitted = () => {
      told.push('committed');
      resolve();
    };
    void transactor.write(write, 0, onCommitted).then(() => told.push('durable'));
  });
  await committed;
  expect(await transactor.readUnflushed(stored)).toEqual([1]);
  expect(told).toEqual(['committed']);
  finish();
  while (told.length < 2) await new Promise((resolve) => setImmediate(resolve));
  flushLog = async () => {};
  const refuse = () => {
    throw new DsecError('conflict', 'no');
  };
  const refused = transactor.write(refuse, 0, () => told.push('never'));
  await expect(refused).rejects.toMatchObject({ code: 'conflict' });
  expect(told).toEqual(['committed', 'durable']);
});

it('flushes what another process has committed before it is told', async () => {
  let flushes = 0;
  flushLog = async () => {
    flushes += 1;
  };
  await transactor.readOne(stored);
  const before = flushes;
  await transactor.readOne(stored);
  expect(flushes).toBe(before);
  const other = openDatabase(join(directory, 'store.db'));
  other.exec('INSERT INTO t VALUES (7, NULL)');
  other.close();
  expect(await transactor.readOne(stored)).toEqual([7]);
  expect(flushes).toBe(before + 1);
});

it('is out of service after a flush that failed, since nobody knows what the disk holds', async () => {
  flushLog = async () => {
    throw new Error('EIO');
  };
  await expect(insert(1)).rejects.toMatchObject({ code: 'unavailable' });
  flushLog = async () => {};
  let isTold = false;
  const onCommitted = () => {
    isTold = true;
  };
  const late = transactor.write(() => {}, 0, onCommitted);
  await expect(late).rejects.toMatchObject({ code: 'unavailable' });
  expect(isTold).toBe(false);
  for (const read of [transactor.readOne, transactor.readUnflushed]) {
    await expect(read(stored)).rejects.toMatchObject({ code: 'unavailable' });
  }
});

it('makes one flush of many that are asked for while one runs', async () => {
  const finish: (() => void)[] = [];
  flushLog = () => new Promise<void>((resolve) => finish.push(resolve));
  const asked = Array.from({ length: 5 }, () => flusher.flush());
  expect(finish).toHaveLength(1);
  finish[0]?.();
  await asked[0];
  await new Promise((resolve) => setImmediate(resolve));
  expect(finish).toHaveLength(2);
  finish[1]?.();
  await Promise.all(asked);
  const later = flusher.flush();
  expect(finish).toHaveLength(3);
  finish[2]?.();
  await later;
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
