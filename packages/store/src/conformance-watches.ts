import assert from 'node:assert/strict';
import {
  bytes,
  type ConformanceCase,
  openWatch,
  refused,
  type StoreHarness,
} from './conformance-harness.ts';
import { LATE_MS_MAX, TTL_MS_MIN } from './store.ts';

export const watchCases: readonly ConformanceCase[] = [
  { name: 'watch: tells what comes, in order, below its prefix only', run: tellsChanges },
  { name: 'watch: goes on from a revision', run: resumes },
  { name: 'watch: after a listing misses nothing', run: followsListing },
  { name: 'watch: of changes not yet taken the newest comes', run: tellsNewest },
  { name: 'watch: tells that a key has expired', run: tellsExpiry },
  { name: 'watch: a reader too far behind is told to list again, then goes on', run: resyncs },
  { name: 'watch: ends with its signal, without an error', run: ends },
  { name: 'watch: waiters are bounded', run: boundsWaiters },
  { name: 'watch: refuses bad arguments', run: refusesArguments },
];

async function tellsChanges({ store }: StoreHarness) {
  const watch = openWatch(store, 'a/', 0);
  const first = watch.take(1);
  await store.keys.put('b/1', bytes('other'));
  await store.keys.put('a/1', bytes('x'));
  assert.deepEqual(await first, ['put a/1 x']);
  await store.keys.put('a/2', bytes('y'));
  assert.deepEqual(await watch.take(1), ['put a/2 y']);
  await store.keys.delete('a/1');
  await store.keys.delete('b/1');
  await store.keys.delete('a/absent');
  await store.keys.create('a/3', bytes('z'));
  assert.deepEqual(await watch.take(2), ['deleted a/1', 'put a/3 z']);
  await watch.stop();
}

async function resumes({ store }: StoreHarness) {
  const first = await store.keys.put('k/1', bytes('a'));
  const second = await store.keys.put('k/2', bytes('b'));
  await store.keys.put('k/3', bytes('c'));
  const all = openWatch(store, '', 0);
  assert.deepEqual(await all.take(3), ['put k/1 a', 'put k/2 b', 'put k/3 c']);
  const rest = openWatch(store, '', first);
  assert.deepEqual(await rest.take(2), ['put k/2 b', 'put k/3 c']);
  const last = openWatch(store, '', second);
  assert.deepEqual(await last.take(1), ['put k/3 c']);
  for (const watch of [all, rest, last]) await watch.stop();
}

async function followsListing({ store }: StoreHarness) {
  const state = new Map<string, number>();
  const write = async () => {
    for (let i = 0; i < 60; i += 1) {
      if (i % 5 === 4) await store.keys.delete(`s/${i % 7}`);
      else await store.keys.put(`s/${i % 7}`, bytes(`${i}`));
    }
    await store.keys.put('s/done', bytes('done'));
  };
  const writing = write();
  let after: string | undefined;
  let revision: number | undefined;
  do {
    const page = await store.keys.list(
      's/',
      after === undefined ? { limit: 2 } : { limit: 2, after },
    );
    revision ??= page.revision;
    for (const entry of page.entries) state.set(entry.key, entry.revision);
    after = page.next;
  } while (after !== undefined);
  const watch = openWatch(store, 's/', revision);
  while (!state.has('s/done')) {
    const { value } = await watch.next();
    if (value.type === 'put') state.set(value.key, value.revision);
    if (value.type === 'gone') state.delete(value.key);
  }
  await writing;
  const truth = (await store.keys.list('s/')).entries.map((entry) => [entry.key, entry.revision]);
  assert.deepEqual([...state].sort(), truth);
  await watch.stop();
}

async function tellsNewest({ store }: StoreHarness) {
  await store.keys.put('k', bytes('1'));
  await store.keys.put('k', bytes('2'));
  await store.keys.put('other', bytes('x'));
  await store.keys.put('gone', bytes('x'));
  await store.keys.put('k', bytes('3'));
  await store.keys.delete('gone');
  const watch = openWatch(store, '', 0);
  const last = (await watch.take(3)).slice(-3);
  assert.deepEqual(last, ['put other x', 'put k 3', 'deleted gone']);
  await watch.stop();
}

async function tellsExpiry({ store, advance }: StoreHarness) {
  await store.keys.put('k', bytes('x'), { ttlMs: TTL_MS_MIN });
  const watch = openWatch(store, '', 0);
  assert.deepEqual(await watch.take(1), ['put k x']);
  const gone = watch.take(1);
  await advance(TTL_MS_MIN + LATE_MS_MAX);
  assert.deepEqual(await gone, ['expired k']);
  await watch.stop();
}

async function resyncs({ store, tombstonesMax }: StoreHarness) {
  const from = await store.keys.put('first', bytes('x'));
  const idle = openWatch(store, 'far/', from);
  const idling = idle.take(1);
  for (let i = 0; i < 3 * tombstonesMax + 3; i += 1) {
    await store.keys.put(`k/${i}`, bytes('x'));
    await store.keys.delete(`k/${i}`);
  }
  await store.keys.put('last', bytes('y'));
  const watch = openWatch(store, '', from);
  assert.deepEqual(await watch.take(1), ['resync']);
  const { entries } = await store.keys.list('');
  assert.deepEqual(
    entries.map((entry) => entry.key),
    ['first', 'last'],
  );
  await store.keys.delete('first');
  await store.keys.put('far/away', bytes('z'));
  assert.deepEqual(await watch.take(2), ['deleted first', 'put far/away z']);
  assert.deepEqual(await idling, ['put far/away z'], 'one that kept up is not told to list again');
  await watch.stop();
  await idle.stop();
}

async function ends({ store }: StoreHarness) {
  const watch = openWatch(store, '', 0);
  const waiting = watch.take(1);
  await new Promise((resolve) => setImmediate(resolve));
  watch.abort();
  assert.deepEqual(await waiting, ['end']);
  const late = openWatch(store, '', 0);
  late.abort();
  assert.deepEqual(await late.take(1), ['end']);
}

async function boundsWaiters({ store, waitersMax }: StoreHarness) {
  const watches = Array.from({ length: waitersMax + 1 }, () => openWatch(store, '', 0));
  const outcomes = watches.map((watch) =>
    watch.take(1).catch((thrown: { code?: string }) => [thrown.code]),
  );
  assert.deepEqual(await Promise.race(outcomes), ['overloaded']);
  for (const watch of watches) watch.abort();
  const ended = (await Promise.all(outcomes)).flat();
  assert.equal(ended.filter((outcome) => outcome === 'end').length, waitersMax);
  const again = openWatch(store, '', 0);
  const next = again.take(1);
  await store.keys.put('k', bytes('x'));
  assert.deepEqual(await next, ['put k x']);
  await again.stop();
}

async function refusesArguments({ store: { keys } }: StoreHarness) {
  const { signal } = new AbortController();
  await refused('invalid-argument', async () => keys.watch('a', { afterRevision: 0, signal }));
  await refused('invalid-argument', async () => keys.watch('', { afterRevision: -1, signal }));
}
