import assert from 'node:assert/strict';
import {
  bytes,
  type ConformanceCase,
  refused,
  type StoreHarness,
  text,
} from './conformance-harness.ts';
import { VALUE_BYTES_MAX } from './store.ts';

export const logCases: readonly ConformanceCase[] = [
  { name: 'logs: entries come back in order, from any position, in pages', run: reads },
  { name: 'logs: logs do not mix, and sequences grow', run: separates },
  { name: 'logs: expectLast admits one of several writers', run: expectsLast },
  { name: 'logs: a reader waits for the next entry', run: waits },
  { name: 'logs: trimmed entries are told, never skipped', run: trims },
  { name: 'logs: a long log is trimmed and removed whole', run: removes },
  { name: 'logs: bad arguments are refused', run: refusesArguments },
];

async function fill({ store: { logs } }: StoreHarness, log: string, count: number) {
  return Promise.all(
    Array.from({ length: count }, (_, i) => logs.append(log, bytes(`${log}${i}`))),
  );
}

async function reads(harness: StoreHarness) {
  const { logs } = harness.store;
  assert.deepEqual(await logs.read('l', { after: 0 }), []);
  assert.deepEqual(await logs.bounds('l'), { last: 0, trimmedThrough: 0 });
  const sequences = await fill(harness, 'l', 10);
  const all = await logs.read('l', { after: 0 });
  assert.deepEqual(
    all.map((entry) => entry.sequence),
    sequences,
  );
  assert.deepEqual(
    all.map((entry) => text(entry.value)),
    sequences.map((_, i) => `l${i}`),
  );
  assert.deepEqual(await logs.read('l', { after: sequences[6] ?? 0 }), all.slice(7));
  assert.deepEqual(await logs.read('l', { after: sequences[1] ?? 0, limit: 3 }), all.slice(2, 5));
  assert.deepEqual(await logs.read('l', { after: sequences[9] ?? 0 }), []);
  assert.deepEqual(await logs.bounds('l'), { last: sequences[9], trimmedThrough: 0 });
  await logs.append('l', new Uint8Array());
  assert.equal((await logs.read('l', { after: sequences[9] ?? 0 }))[0]?.value.byteLength, 0);
}

async function separates({ store: { logs, keys } }: StoreHarness) {
  const seen: number[] = [];
  for (let i = 0; i < 9; i += 1) {
    seen.push(await logs.append(`l/${i % 3}`, bytes(`${i}`)));
    await keys.put('k', bytes('x'));
  }
  assert.deepEqual(
    seen,
    [...new Set(seen)].sort((a, b) => a - b),
  );
  const second = await logs.read('l/1', { after: 0 });
  assert.deepEqual(
    second.map((entry) => text(entry.value)),
    ['1', '4', '7'],
  );
}

async function expectsLast({ store: { logs } }: StoreHarness) {
  await refused('conflict', () => logs.append('l', bytes('x'), { expectLast: 3 }));
  const attempts = await Promise.allSettled(
    Array.from({ length: 10 }, (_, i) => logs.append('l', bytes(`${i}`), { expectLast: 0 })),
  );
  const winners = attempts.filter((attempt) => attempt.status === 'fulfilled');
  assert.equal(winners.length, 1);
  const first = winners[0]?.value ?? 0;
  const error = await refused('conflict', () => logs.append('l', bytes('x'), { expectLast: 0 }));
  assert.equal(error.details.last, first);
  const second = await logs.append('l', bytes('next'), { expectLast: first });
  assert.equal((await logs.read('l', { after: 0 })).length, 2);
  await logs.trim('l', second);
  await logs.append('l', bytes('more'), { expectLast: second });
}

async function waits({ store: { logs }, advance }: StoreHarness) {
  const waiting = logs.read('l', { after: 0, waitMs: 60_000 });
  await logs.append('other', bytes('x'));
  const sequence = await logs.append('l', bytes('here'));
  assert.deepEqual(
    (await waiting).map((entry) => entry.sequence),
    [sequence],
  );
  const timed = logs.read('l', { after: sequence, waitMs: 500 });
  await advance(600);
  assert.deepEqual(await timed, []);
  const abort = new AbortController();
  const aborted = logs.read('l', { after: sequence, waitMs: 60_000, signal: abort.signal });
  abort.abort();
  assert.deepEqual(await aborted, []);
}

async function trims(harness: StoreHarness) {
  const { logs } = harness.store;
  await logs.trim('absent', 5);
  const sequences = await fill(harness, 'l', 6);
  const at = (i: number) => sequences[i] ?? 0;
  await logs.trim('l', at(2));
  assert.deepEqual(await logs.bounds('l'), { last: at(5), trimmedThrough: at(2) });
  const error = await refused('output-lost', () => logs.read('l', { after: at(0) }));
  assert.equal(error.details.after, at(2));
  await refused('output-lost', () => logs.read('l', { after: 0, waitMs: 1000 }));
  const rest = await logs.read('l', { after: at(2) });
  assert.deepEqual(
    rest.map((entry) => entry.sequence),
    sequences.slice(3),
  );
  await logs.trim('l', at(1));
  assert.equal((await logs.bounds('l')).trimmedThrough, at(2));
  await logs.trim('l', Number.MAX_SAFE_INTEGER);
  assert.deepEqual(await logs.bounds('l'), { last: at(5), trimmedThrough: at(4) });
  const newest = await logs.read('l', { after: at(4) });
  assert.deepEqual(
    newest.map((entry) => text(entry.value)),
    ['l5'],
  );
}

async function removes(harness: StoreHarness) {
  const { logs } = harness.store;
  await logs.remove('absent');
  const sequences = await fill(harness, 'long', 2500);
  await logs.trim('long', sequences[2300] ?? 0);
  const rest = await logs.read('long', { after: sequences[2300] ?? 0 });
  assert.equal(rest.length, 199);
  await logs.remove('long');
  assert.deepEqual(await logs.bounds('long'), { last: 0, trimmedThrough: 0 });
  assert.deepEqual(await logs.read('long', { after: 0 }), []);
  assert.ok((await logs.append('long', bytes('x'), { expectLast: 0 })) > (sequences.at(-1) ?? 0));
}

async function refusesArguments({ store: { logs } }: StoreHarness) {
  const large = new Uint8Array(VALUE_BYTES_MAX + 1);
  await refused('too-large', () => logs.append('l', large));
  for (const name of ['', 'a/', '..', 'a b']) {
    await refused('invalid-argument', () => logs.append(name, bytes('x')));
    await refused('invalid-argument', () => logs.read(name, { after: 0 }));
    await refused('invalid-argument', () => logs.trim(name, 0));
    await refused('invalid-argument', () => logs.remove(name));
    await refused('invalid-argument', () => logs.bounds(name));
  }
  await refused('invalid-argument', () => logs.read('l', { after: -1 }));
  await refused('invalid-argument', () => logs.read('l', { after: 0, limit: 0 }));
  await refused('invalid-argument', () => logs.read('l', { after: 0, waitMs: -1 }));
  await refused('invalid-argument', () => logs.append('l', bytes('x'), { expectLast: -1 }));
  await refused('invalid-argument', () => logs.trim('l', 0.5));
}
