import assert from 'node:assert/strict';
import {
  bytes,
  type ConformanceCase,
  openWatch,
  refused,
  type StoreHarness,
  text,
} from './conformance-harness.ts';
import { NAME_LENGTH_MAX, PAGE_BYTES_MAX, TTL_MS_MIN, VALUE_BYTES_MAX } from './store.ts';

export const keyCases: readonly ConformanceCase[] = [
  { name: 'keys: a value comes back with the revision of its write', run: readsBack },
  {
    name: 'keys: values are bytes, from none to the maximum, and belong to the store',
    run: ownsBytes,
  },
  { name: 'keys: of many creates of one key one succeeds', run: createsOnce },
  { name: 'keys: compareAndSet refuses every revision but the newest', run: comparesAndSets },
  { name: 'keys: concurrent compareAndSet loses no update', run: losesNoUpdate },
  { name: 'keys: delete, with and without a revision', run: deletes },
  { name: 'keys: a key can be made again after its end, with a greater revision', run: remakes },
  { name: 'keys: a listing is ordered, paged and bounded to its prefix', run: lists },
  { name: 'keys: a page is bounded in bytes', run: boundsPages },
  {
    name: 'keys: a listing tells each key that stays once, whatever happens meanwhile',
    run: listsUnderChange,
  },
  { name: 'keys: a key with a TTL goes in time and not before', run: expires },
  { name: 'keys: a write renews or removes the TTL', run: renews },
  { name: 'keys: names and numbers outside the grammar are refused', run: refusesArguments },
  { name: 'store: closed, it refuses and ends its waiters', run: closes },
];

async function readsBack({ store: { keys } }: StoreHarness) {
  assert.equal(await keys.get('a/b'), undefined);
  const first = await keys.put('a/b', bytes('one'));
  const second = await keys.put('a/b', bytes('two'));
  assert.ok(first > 0 && second > first);
  const entry = await keys.get('a/b');
  assert.equal(entry?.key, 'a/b');
  assert.equal(text(entry?.value), 'two');
  assert.equal(entry?.revision, second);
  assert.equal(await keys.get('a'), undefined);
}

async function ownsBytes({ store: { keys } }: StoreHarness) {
  await keys.put('empty', new Uint8Array());
  assert.equal((await keys.get('empty'))?.value.byteLength, 0);
  const all = Uint8Array.from({ length: 256 }, (_, i) => i);
  const put = keys.put('all', all);
  all.fill(7);
  await put;
  const read = (await keys.get('all'))?.value;
  assert.deepEqual([...(read ?? [])], [...Uint8Array.from({ length: 256 }, (_, i) => i)]);
  read?.fill(9);
  assert.equal((await keys.get('all'))?.value[255], 255);
  await keys.put('large', new Uint8Array(VALUE_BYTES_MAX));
  assert.equal((await keys.get('large'))?.value.byteLength, VALUE_BYTES_MAX);
  await refused('too-large', () => keys.put('larger', new Uint8Array(VALUE_BYTES_MAX + 1)));
  assert.equal(await keys.get('larger'), undefined);
}

async function createsOnce({ store: { keys } }: StoreHarness) {
  const attempts = await Promise.allSettled(
    Array.from({ length: 20 }, (_, i) => keys.create('job/one', bytes(`${i}`))),
  );
  const winners = attempts.filter((attempt) => attempt.status === 'fulfilled');
  assert.equal(winners.length, 1);
  const entry = await keys.get('job/one');
  assert.equal(entry?.revision, winners[0]?.value);
  const error = await refused('already-exists', () => keys.create('job/one', bytes('late')));
  assert.equal(error.details.revision, entry?.revision);
}

async function comparesAndSets({ store: { keys } }: StoreHarness) {
  await refused('conflict', () => keys.compareAndSet('k', bytes('x'), 1));
  const first = await keys.create('k', bytes('a'));
  await refused('conflict', () => keys.compareAndSet('k', bytes('x'), 0));
  const second = await keys.compareAndSet('k', bytes('b'), first);
  const error = await refused('conflict', () => keys.compareAndSet('k', bytes('x'), first));
  assert.equal(error.details.found, second);
  assert.equal(text((await keys.get('k'))?.value), 'b');
  await keys.delete('k');
  await refused('conflict', () => keys.compareAndSet('k', bytes('x'), second));
}

async function losesNoUpdate({ store: { keys } }: StoreHarness) {
  await keys.create('counter', bytes('0'));
  const addOne = async () => {
    for (;;) {
      const entry = await keys.get('counter');
      assert.ok(entry !== undefined);
      const next = bytes(String(Number(text(entry.value)) + 1));
      try {
        await keys.compareAndSet('counter', next, entry.revision);
        return;
      } catch (thrown) {
        assert.equal((thrown as { code?: string }).code, 'conflict');
      }
    }
  };
  await Promise.all(Array.from({ length: 25 }, addOne));
  assert.equal(text((await keys.get('counter'))?.value), '25');
}

async function deletes({ store: { keys } }: StoreHarness) {
  await keys.delete('absent');
  await refused('conflict', () => keys.delete('absent', 1));
  const first = await keys.put('k', bytes('a'));
  const second = await keys.put('k', bytes('b'));
  await refused('conflict', () => keys.delete('k', first));
  assert.equal(text((await keys.get('k'))?.value), 'b');
  await keys.delete('k', second);
  assert.equal(await keys.get('k'), undefined);
  await refused('conflict', () => keys.delete('k', second));
  assert.deepEqual((await keys.list('')).entries, []);
}

async function remakes({ store: { keys } }: StoreHarness) {
  const first = await keys.create('k', bytes('a'));
  await keys.delete('k');
  const second = await keys.create('k', bytes('b'));
  assert.ok(second > first);
  assert.equal(text((await keys.get('k'))?.value), 'b');
}

async function lists({ store: { keys } }: StoreHarness) {
  const names = [
    'p/b',
    'p/a',
    'p/a-b',
    'p/a/z',
    'p/a.b',
    'p/B',
    'p/10',
    'p/9',
    'q',
    'p',
    'pq/a',
    'o/z',
  ];
  for (const name of names) await keys.put(name, bytes(name));
  const below = ['p/10', 'p/9', 'p/B', 'p/a', 'p/a-b', 'p/a.b', 'p/a/z', 'p/b'];
  const whole = await keys.list('p/');
  assert.deepEqual(
    whole.entries.map((entry) => entry.key),
    below,
  );
  assert.deepEqual(
    whole.entries.map((entry) => text(entry.value)),
    below,
  );
  assert.equal(whole.next, undefined);
  assert.deepEqual(
    (await keys.list('')).entries.map((entry) => entry.key),
    names.sort(),
  );
  assert.deepEqual(
    (await keys.list('p/a/')).entries.map((entry) => entry.key),
    ['p/a/z'],
  );
  for (const limit of [1, 3, 7, 8, 9]) {
    const paged: string[] = [];
    let after: string | undefined;
    do {
      const page = await keys.list('p/', after === undefined ? { limit } : { limit, after });
      assert.ok(page.entries.length <= limit);
      paged.push(...page.entries.map((entry) => entry.key));
      after = page.next;
    } while (after !== undefined);
    assert.deepEqual(paged, below);
  }
}

async function boundsPages({ store: { keys } }: StoreHarness) {
  const fitting = PAGE_BYTES_MAX / VALUE_BYTES_MAX;
  const name = (i: number) => `big/${String(i).padStart(3, '0')}`;
  for (let i = 0; i <= fitting; i += 1) await keys.put(name(i), new Uint8Array(VALUE_BYTES_MAX));
  const page = await keys.list('big/');
  assert.equal(page.entries.length, fitting);
  assert.equal(page.next, name(fitting - 1));
  const rest = await keys.list('big/', { after: name(fitting - 1) });
  assert.deepEqual(
    rest.entries.map((entry) => entry.key),
    [name(fitting)],
  );
  assert.equal(rest.next, undefined);
}

async function listsUnderChange({ store: { keys } }: StoreHarness) {
  const stay = Array.from({ length: 20 }, (_, i) => `s/${String(i).padStart(2, '0')}`);
  for (const key of stay) await keys.put(key, bytes('x'));
  const seen: string[] = [];
  let after: string | undefined;
  let round = 0;
  do {
    const page = await keys.list('s/', after === undefined ? { limit: 3 } : { limit: 3, after });
    seen.push(...page.entries.map((entry) => entry.key));
    after = page.next;
    round += 1;
    await keys.put(`s/${String(round).padStart(2, '0')}-new`, bytes('y'));
    await keys.put(stay[round] ?? 's/00', bytes('again'));
    await keys.delete(`s/${String(round - 1).padStart(2, '0')}-new`);
  } while (after !== undefined);
  assert.deepEqual(
    seen.filter((key) => stay.includes(key)),
    stay,
  );
}

async function expires({ store: { keys }, advance }: StoreHarness) {
  await keys.put('k', bytes('a'), { ttlMs: 2000 });
  await keys.put('stays', bytes('b'));
  await advance(1900);
  assert.equal(text((await keys.get('k'))?.value), 'a');
  await advance(101);
  assert.equal(await keys.get('k'), undefined);
  assert.deepEqual(
    (await keys.list('')).entries.map((entry) => entry.key),
    ['stays'],
  );
  await refused('conflict', () => keys.delete('k', 1));
  await keys.create('k', bytes('c'), { ttlMs: TTL_MS_MIN });
  await advance(TTL_MS_MIN + 1);
  await keys.create('k', bytes('d'));
  await advance(10 * TTL_MS_MIN);
  assert.equal(text((await keys.get('k'))?.value), 'd');
}

async function renews({ store: { keys }, advance }: StoreHarness) {
  const first = await keys.create('renewed', bytes('a'), { ttlMs: 1000 });
  await keys.create('kept', bytes('a'), { ttlMs: 1000 });
  await advance(800);
  await keys.compareAndSet('renewed', bytes('b'), first, { ttlMs: 1000 });
  await keys.put('kept', bytes('b'));
  await advance(900);
  assert.equal(text((await keys.get('renewed'))?.value), 'b');
  await advance(200);
  assert.equal(await keys.get('renewed'), undefined);
  await advance(5000);
  assert.equal(text((await keys.get('kept'))?.value), 'b');
}

async function refusesArguments({ store: { keys } }: StoreHarness) {
  const value = bytes('x');
  const names = [
    '',
    '/',
    '/a',
    'a/',
    'a//b',
    '.',
    '..',
    'a/..',
    '.a',
    'a.',
    'a..b',
    'a b',
    'ä',
    'a\0',
  ];
  for (const key of [...names, 'a:b', 'a*', '>', 'a'.repeat(NAME_LENGTH_MAX + 1)]) {
    await refused('invalid-argument', () => keys.get(key));
    await refused('invalid-argument', () => keys.put(key, value));
    await refused('invalid-argument', () => keys.delete(key));
  }
  await keys.put('a'.repeat(NAME_LENGTH_MAX), value);
  await keys.put('A_b=c-d.e/0', value);
  for (const prefix of ['a', '/', 'a//', '../', 'a/b']) {
    await refused('invalid-argument', () => keys.list(prefix));
  }
  await refused('invalid-argument', () => keys.list('p/', { after: 'q/a' }));
  for (const limit of [0, -1, 1.5, Number.NaN, 100_000]) {
    await refused('invalid-argument', () => keys.list('', { limit }));
  }
  for (const revision of [-1, 0.5, Number.NaN]) {
    await refused('invalid-argument', () => keys.compareAndSet('a', value, revision));
    await refused('invalid-argument', () => keys.delete('a', revision));
  }
  for (const ttlMs of [0, -1, TTL_MS_MIN - 1, 1500.5, Number.POSITIVE_INFINITY]) {
    await refused('invalid-argument', () => keys.put('a', value, { ttlMs }));
  }
  await refused('invalid-argument', () => keys.put('a', 'text' as unknown as Uint8Array));
}

async function closes({ store }: StoreHarness) {
  await store.queues.define('q', { leaseMs: 1000, deliveriesMax: 2, depthMax: 2, deadMax: 2 });
  const watch = openWatch(store, 'w/', 0);
  const waiters = [
    () => watch.next(),
    () => store.queues.lease('q', { waitMs: 60_000 }),
    () => store.logs.read('l', { after: 0, waitMs: 60_000 }),
  ].map((wait) => refused('unavailable', wait));
  const write = store.keys.put('k', bytes('x'));
  await new Promise((resolve) => setImmediate(resolve));
  await store.close();
  assert.ok((await write) > 0, 'a write under way is finished');
  await Promise.all(waiters);
  await refused('unavailable', () => store.keys.get('k'));
  await refused('unavailable', () => store.keys.put('k', bytes('x')));
  await refused('unavailable', () => store.logs.append('l', bytes('x')));
  await refused('unavailable', () => store.queues.enqueue('q', bytes('x')));
}
