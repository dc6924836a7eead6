import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createManualClock } from '@dsec/std';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createMemoryStore, type LeasedItem, openSqliteStore, type Store } from '../src/index.ts';

/** One random operation. Small ranges, so that operations meet. */
type Step = readonly [operation: string, name: number, value: number];

const step: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom(
    ...['put', 'create', 'set', 'delete', 'list', 'append', 'expect', 'trim', 'read', 'forget'],
    ...['define', 'enqueue', 'lease', 'ack', 'nack', 'extend', 'dead', 'stats', 'advance'],
  ),
  fc.integer({ min: 0, max: 3 }),
  fc.integer({ min: 0, max: 4 }),
);

const LONG = process.env.DSEC_TEST_LONG === '1';

it('both drivers answer alike, whatever is asked of them', { timeout: 900_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120 }), async (steps) => {
      const directory = mkdtempSync(join(tmpdir(), 'dsec-store-'));
      const clock = createManualClock(1000);
      const memory = createMemoryStore({ clock });
      const path = join(directory, 'store.db');
      const sqlite = await openSqliteStore({ path, clock, bootId: 'boot' });
      try {
        const players = [createPlayer(memory), createPlayer(sqlite)] as const;
        for (const [operation, name, value] of steps) {
          if (operation === 'advance') clock.advance(value * 700);
          const expected = await players[0](operation, name, value);
          expect(await players[1](operation, name, value), operation).toEqual(expected);
        }
      } finally {
        await sqlite.close();
        rmSync(directory, { recursive: true });
      }
    }),
    { seed: Number(process.env.SEED ?? 1), numRuns: LONG ? 1000 : 40 },
  );
});

/**
 * Plays operations on a store and describes the answers. Revisions and tokens of two stores differ
 * in size but not in order, so each is described by its place in the order of first appearance.
 */
function createPlayer(store: Store) {
  const seen: number[] = [];
  const leases: LeasedItem[] = [];
  const rank = (revision: number) => {
    if (revision === 0) return 0;
    if (!seen.includes(revision)) seen.push(revision);
    return seen.indexOf(revision) + 1;
  };
  const value = (bytes: Uint8Array) => [...bytes];
  const lease = (at: number) => leases[at % Math.max(leases.length, 1)] ?? NO_LEASE;
  const operations: Record<string, (name: number, n: number) => Promise<unknown>> = {
    put: async (name, n) => rank(await store.keys.put(`k/${name}`, Uint8Array.of(n), ttl(n))),
    create: async (name, n) => rank(await store.keys.create(`k/${name}`, Uint8Array.of(n), ttl(n))),
    set: async (name, n) => {
      const revision = (await store.keys.get(`k/${name}`))?.revision ?? seen[n] ?? 1;
      return rank(await store.keys.compareAndSet(`k/${name}`, Uint8Array.of(n), revision, ttl(n)));
    },
    delete: (name, n) => store.keys.delete(`k/${name}`, n === 0 ? seen[name] : undefined),
    list: async () =>
      (await store.keys.list('k/')).entries.map((entry) => [
        entry.key,
        rank(entry.revision),
        value(entry.value),
      ]),
    append: async (name, n) => rank(await store.logs.append(`l/${name}`, Uint8Array.of(n))),
    expect: async (name, n) => {
      const { last } = await store.logs.bounds(`l/${name}`);
      const expectLast = n === 0 ? 0 : last;
      return rank(await store.logs.append(`l/${name}`, Uint8Array.of(n), { expectLast }));
    },
    trim: (name, n) => store.logs.trim(`l/${name}`, seen.at(-1 - n) ?? 0),
    read: async (name, n) => {
      const { last, trimmedThrough } = await store.logs.bounds(`l/${name}`);
      const after = n < 2 ? 0 : trimmedThrough;
      const entries = await store.logs.read(`l/${name}`, { after });
      const described = entries.map((entry) => [rank(entry.sequence), value(entry.value)]);
      return [rank(last), rank(trimmedThrough), described];
    },
    forget: (name, n) =>
      n === 0 ? store.logs.remove(`l/${name}`) : store.logs.trim(`l/${name}`, 0),
    define: (name, n) => store.queues.define(`q/${name}`, limits(n)),
    enqueue: async (name, n) => rank(await store.queues.enqueue(`q/${name}`, Uint8Array.of(n))),
    lease: async (name, n) => {
      const items = await store.queues.lease(`q/${name}`, { max: n + 1 });
      leases.push(...items);
      return items.map((item) => [rank(item.sequence), item.delivery, value(item.value)]);
    },
    ack: (name, n) => store.queues.ack(lease(name + n)),
    nack: (name, n) => store.queues.nack(lease(name), { delayMs: n * 300 }),
    extend: (name, n) => store.queues.extend(lease(name + n)),
    dead: async (name) =>
      (await store.queues.dead(`q/${name}`)).map((letter) => [
        rank(letter.sequence),
        letter.deliveries,
        value(letter.value),
      ]),
    stats: (name) => store.queues.stats(`q/${name}`),
    advance: async () => undefined,
  };
  return async (operation: string, name: number, n: number): Promise<unknown> => {
    try {
      return await operations[operation]?.(name, n);
    } catch (thrown) {
      return (thrown as { code?: string }).code;
    }
  };
}

const NO_LEASE = { queue: 'q/0', sequence: 1, token: 'none', delivery: 1, value: new Uint8Array() };

const ttl = (n: number) => (n < 2 ? {} : { ttlMs: n * 1000 });

const limits = (n: number) => ({ leaseMs: 1000, deliveriesMax: 2, depthMax: 3 + n, deadMax: 2 });
