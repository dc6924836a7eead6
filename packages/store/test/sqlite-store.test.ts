import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createManualClock } from '@dsec/std';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSqliteStore, type Store } from '../src/index.ts';
import { BOUNDS, runCase, storeConformance } from './harness.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (value: Uint8Array | undefined) => new TextDecoder().decode(value);

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dsec-store-'));
  path = join(directory, 'store.db');
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

describe('SQLite store', () => {
  for (const { name, run } of storeConformance) {
    it(name, () =>
      runCase(run, (clock) => openSqliteStore({ path, clock, bootId: 'boot', ...BOUNDS })),
    );
  }
});

describe('SQLite store as a file', () => {
  it('keeps everything over a close, revisions included', async () => {
    const first = await openSqliteStore({ path });
    const revision = await first.keys.put('k', bytes('v'));
    const sequence = await first.logs.append('l', bytes('e'));
    await first.queues.define('q', { leaseMs: 1000, deliveriesMax: 2, depthMax: 2, deadMax: 2 });
    await first.queues.enqueue('q', bytes('i'));
    await first.close();
    const second = await openSqliteStore({ path });
    expect((await second.keys.get('k'))?.revision).toBe(revision);
    expect((await second.logs.read('l', { after: 0 }))[0]?.sequence).toBe(sequence);
    expect(text((await second.queues.lease('q'))[0]?.value)).toBe('i');
    expect(await second.keys.put('k', bytes('w'))).toBeGreaterThan(revision);
    await second.close();
  });

  it('is readable by its owner only', async () => {
    const store = await openSqliteStore({ path });
    await store.keys.put('k', bytes('secret'));
    for (const suffix of ['', '-wal', '-shm']) {
      expect(statSync(path + suffix).mode & 0o777).toBe(0o600);
    }
    await store.close();
  });

  it('refuses a file of another program, a newer schema, and damage', async () => {
    const foreign = new Database(path);
    foreign.exec('CREATE TABLE t (a)');
    foreign.close();
    const before = readFileSync(path);
    await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: 'unsupported' });
    expect(readFileSync(path).equals(before)).toBe(true);

    const newer = join(directory, 'newer.db');
    await (await openSqliteStore({ path: newer })).close();
    const db = new Database(newer);
    db.pragma('user_version = 99');
    db.close();
    await expect(openSqliteStore({ path: newer })).rejects.toMatchObject({ code: 'unsupported' });

    const noise = join(directory, 'noise.db');
    writeFileSync(noise, 'no database at all '.repeat(500));
    await expect(openSqliteStore({ path: noise })).rejects.toMatchObject({ code: 'data-loss' });
  });

  it('reports damaged pages as data-loss, and never as other bytes', async () => {
    const store = await openSqliteStore({ path });
    for (let i = 0; i < 200; i += 1) await store.keys.put(`k/${i}`, bytes('x'.repeat(2000)));
    await store.close();
    const file = readFileSync(path);
    file.fill(0xff, 8192, file.length - 4096);
    writeFileSync(path, file);
    const damaged = await openSqliteStore({ path });
    await expect(damaged.keys.list('')).rejects.toMatchObject({ code: 'data-loss' });
    await damaged.close();
  });
});

describe('SQLite store of several processes', () => {
  let one: Store;
  let two: Store;
  beforeEach(async () => {
    one = await openSqliteStore({ path, pollMs: 5 });
    two = await openSqliteStore({ path, pollMs: 5, busyTimeoutMs: 150 });
  });
  afterEach(async () => {
    await one.close();
    await two.close();
  });

  it('tells watchers, readers and leasers of another handle', async () => {
    const { signal } = new AbortController();
    const watch = two.keys.watch('', { afterRevision: 0, signal })[Symbol.asyncIterator]();
    const change = watch.next();
    const entries = two.logs.read('l', { after: 0, waitMs: 20_000 });
    await one.queues.define('q', { leaseMs: 1000, deliveriesMax: 2, depthMax: 2, deadMax: 2 });
    const items = two.queues.lease('q', { waitMs: 20_000 });
    await one.keys.put('k', bytes('v'));
    await one.logs.append('l', bytes('e'));
    await one.queues.enqueue('q', bytes('i'));
    expect((await change).value).toMatchObject({ type: 'put', key: 'k' });
    expect(text((await entries)[0]?.value)).toBe('e');
    expect(text((await items)[0]?.value)).toBe('i');
    await watch.return?.();
  });

  it('tells a watcher of an expiry although nobody writes', async () => {
    await one.keys.put('k', bytes('v'), { ttlMs: 1000 });
    const { signal } = new AbortController();
    const watch = two.keys.watch('', { afterRevision: 0, signal })[Symbol.asyncIterator]();
    expect((await watch.next()).value).toMatchObject({ type: 'put' });
    expect((await watch.next()).value).toMatchObject({ type: 'gone', reason: 'expired' });
    await watch.return?.();
  });

  it('is unavailable while another process holds the lock, and works again after', async () => {
    const holder = new Database(path);
    holder.exec('BEGIN IMMEDIATE');
    await expect(two.keys.put('k', bytes('v'))).rejects.toMatchObject({ code: 'unavailable' });
    expect(await two.keys.get('k')).toBeUndefined();
    const patient = one.keys.put('k', bytes('w'));
    await new Promise((resolve) => setTimeout(resolve, 50));
    holder.exec('ROLLBACK');
    holder.close();
    expect(await patient).toBeGreaterThan(0);
    expect(text((await two.keys.get('k'))?.value)).toBe('w');
  });
});

describe('clock of a SQLite store', () => {
  const ttlMs = 60_000;

  it('ignores steps of the wall clock', async () => {
    const clock = createManualClock(1_000_000);
    const store = await openSqliteStore({ path, clock, bootId: 'a' });
    await store.keys.put('k', bytes('v'), { ttlMs });
    clock.stepWall(10 * ttlMs);
    expect(await store.keys.get('k')).toBeDefined();
    clock.stepWall(-20 * ttlMs);
    clock.advance(ttlMs);
    expect(await store.keys.get('k')).toBeUndefined();
    await store.close();
  });

  it('is shared by the processes of a boot, whenever they start', async () => {
    const clock = createManualClock(1_000_000);
    const first = await openSqliteStore({ path, clock, bootId: 'a' });
    await first.keys.put('k', bytes('v'), { ttlMs });
    clock.advance(ttlMs - 1);
    clock.stepWall(12 * ttlMs);
    const second = await openSqliteStore({ path, clock, bootId: 'a' });
    expect(await second.keys.get('k')).toBeDefined();
    clock.advance(1);
    expect(await second.keys.get('k')).toBeUndefined();
    await first.close();
    await second.close();
  });

  it('goes on from the wall clock after a boot, but never before the last write', async () => {
    const start = 1_000_000;
    const first = await openSqliteStore({ path, clock: createManualClock(start), bootId: 'a' });
    await first.keys.put('k', bytes('v'), { ttlMs });
    await first.close();
    const early = await openSqliteStore({ path, clock: createManualClock(0), bootId: 'b' });
    expect(await early.keys.get('k')).toBeDefined();
    await early.close();
    const late = createManualClock(start + ttlMs);
    const second = await openSqliteStore({ path, clock: late, bootId: 'c' });
    expect(await second.keys.get('k')).toBeUndefined();
    await second.close();
  });
});
