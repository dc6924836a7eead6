import assert from 'node:assert/strict';
import {
  bytes,
  type ConformanceCase,
  refused,
  type StoreHarness,
  text,
} from './conformance-harness.ts';
import { type LeasedItem, PAGE_BYTES_MAX, VALUE_BYTES_MAX } from './store.ts';

export const queueCases: readonly ConformanceCase[] = [
  {
    name: 'queues: items come in order, each to one holder, and go when acknowledged',
    run: delivers,
  },
  { name: 'queues: concurrent holders never share an item', run: shares },
  {
    name: 'queues: an item whose lease ran out comes again, and the late holder is refused',
    run: redelivers,
  },
  { name: 'queues: a lease can be extended', run: extendsLease },
  { name: 'queues: an item given back comes again, after its delay', run: givesBack },
  { name: 'queues: too many deliveries make a dead letter', run: buries },
  { name: 'queues: dead letters are bounded, and the loss is counted', run: boundsDead },
  { name: 'queues: depth is bounded', run: boundsDepth },
  { name: 'queues: a batch is bounded in bytes', run: boundsBatch },
  {
    name: 'queues: lease waits for an item, for a lease to end, for its time or its signal',
    run: waits,
  },
  { name: 'queues: limits can change, and a queue can be removed', run: redefines },
  { name: 'queues: bad arguments are refused', run: refusesArguments },
];

const LIMITS = { leaseMs: 1000, deliveriesMax: 3, depthMax: 50, deadMax: 4 };

async function fill({ store: { queues } }: StoreHarness, count: number, limits = LIMITS) {
  await queues.define('q', limits);
  for (let i = 0; i < count; i += 1) await queues.enqueue('q', bytes(`${i}`));
}

const texts = (items: readonly { value: Uint8Array }[]) => items.map((item) => text(item.value));

async function leaseOne({ store: { queues } }: StoreHarness): Promise<LeasedItem> {
  const [item] = await queues.lease('q');
  assert.ok(item !== undefined, 'an item can be leased');
  return item;
}

async function delivers(harness: StoreHarness) {
  const { queues } = harness.store;
  await fill(harness, 4);
  assert.deepEqual(await queues.stats('q'), { depth: 4, leased: 0, dead: 0, deadDropped: 0 });
  const first = await leaseOne(harness);
  assert.equal(first.queue, 'q');
  assert.equal(first.delivery, 1);
  const rest = await queues.lease('q', { max: 10 });
  assert.deepEqual(texts([first, ...rest]), ['0', '1', '2', '3']);
  assert.deepEqual(await queues.lease('q'), []);
  assert.deepEqual(await queues.stats('q'), { depth: 4, leased: 4, dead: 0, deadDropped: 0 });
  for (const item of [first, ...rest]) await queues.ack(item);
  assert.deepEqual(await queues.stats('q'), { depth: 0, leased: 0, dead: 0, deadDropped: 0 });
  await refused('conflict', () => queues.ack(first));
}

async function shares(harness: StoreHarness) {
  const { queues } = harness.store;
  await fill(harness, 40);
  const taken: (string | undefined)[] = [];
  const work = async () => {
    for (let items = await queues.lease('q', { max: 3 }); items.length > 0; ) {
      taken.push(...texts(items));
      for (const item of items) await queues.ack(item);
      items = await queues.lease('q', { max: 3 });
    }
  };
  await Promise.all([work(), work(), work(), work()]);
  assert.deepEqual(
    taken.map(Number).sort((a, b) => a - b),
    Array.from({ length: 40 }, (_, i) => i),
  );
}

async function redelivers(harness: StoreHarness) {
  const { queues } = harness.store;
  await fill(harness, 2);
  const late = await leaseOne(harness);
  await harness.advance(1001);
  await refused('conflict', () => queues.ack(late));
  await refused('conflict', () => queues.nack(late));
  await refused('conflict', () => queues.extend(late));
  const [next, again] = await queues.lease('q', { max: 2 });
  assert.deepEqual([text(next?.value), text(again?.value)], ['1', '0']);
  assert.equal(again?.sequence, late.sequence);
  assert.equal(again?.delivery, 2);
  await refused('conflict', () => queues.ack(late));
  await queues.ack(again);
  assert.equal((await queues.stats('q')).depth, 1);
}

async function extendsLease(harness: StoreHarness) {
  const { queues } = harness.store;
  await fill(harness, 1);
  const item = await leaseOne(harness);
  for (let i = 0; i < 3; i += 1) {
    await harness.advance(800);
    await queues.extend(item);
    assert.deepEqual(await queues.lease('q'), []);
  }
  await queues.ack(item);
}

async function givesBack(harness: StoreHarness) {
  const { queues } = harness.store;
  await fill(harness, 1);
  await queues.nack(await leaseOne(harness));
  const second = await leaseOne(harness);
  assert.equal(second.delivery, 2);
  await queues.nack(second, { delayMs: 500 });
  assert.deepEqual(await queues.lease('q'), []);
  assert.deepEqual(await queues.stats('q'), { depth: 1, leased: 0, dead: 0, deadDropped: 0 });
  await refused('conflict', () => queues.ack(second));
  await harness.advance(501);
  assert.equal((await leaseOne(harness)).delivery, 3);
}

async function buries(harness: StoreHarness) {
  const { queues } = harness.store;
  await fill(harness, 2, { ...LIMITS, deliveriesMax: 2 });
  for (let i = 0; i < 2; i += 1) {
    assert.equal((await queues.lease('q', { max: 2 })).length, 2);
    await harness.advance(1001);
  }
  assert.deepEqual(await queues.lease('q', { max: 2 }), []);
  assert.deepEqual(await queues.stats('q'), { depth: 0, leased: 0, dead: 2, deadDropped: 0 });
  const dead = await queues.dead('q');
  assert.deepEqual(texts(dead), ['0', '1']);
  assert.deepEqual(
    dead.map((letter) => letter.deliveries),
    [2, 2],
  );
  const [first, second] = dead.map((letter) => letter.sequence);
  assert.deepEqual(texts(await queues.dead('q', { after: first ?? 0 })), ['1']);
  assert.deepEqual(texts(await queues.dead('q', { limit: 1 })), ['0']);
  await queues.discard('q', first ?? 0);
  await queues.discard('q', first ?? 0);
  assert.deepEqual(
    (await queues.dead('q')).map((letter) => letter.sequence),
    [second],
  );
  await queues.enqueue('q', bytes('nacked'));
  await queues.nack(await leaseOne(harness));
  await queues.nack(await leaseOne(harness));
  assert.deepEqual(texts(await queues.dead('q')), ['1', 'nacked']);
}

async function boundsDead(harness: StoreHarness) {
  const { queues } = harness.store;
  await fill(harness, 7, { ...LIMITS, deliveriesMax: 1 });
  for (let i = 0; i < 7; i += 1) await queues.nack(await leaseOne(harness));
  assert.deepEqual(await queues.stats('q'), { depth: 0, leased: 0, dead: 4, deadDropped: 3 });
  assert.deepEqual(texts(await queues.dead('q')), ['3', '4', '5', '6']);
}

async function boundsDepth(harness: StoreHarness) {
  const { queues } = harness.store;
  await fill(harness, 2, { ...LIMITS, depthMax: 2 });
  await refused('overloaded', () => queues.enqueue('q', bytes('x')));
  const item = await leaseOne(harness);
  await refused('overloaded', () => queues.enqueue('q', bytes('x')));
  await queues.ack(item);
  await queues.enqueue('q', bytes('2'));
  assert.deepEqual(texts(await queues.lease('q', { max: 5 })), ['1', '2']);
}

async function boundsBatch(harness: StoreHarness) {
  const { queues } = harness.store;
  const fitting = PAGE_BYTES_MAX / VALUE_BYTES_MAX;
  await queues.define('q', LIMITS);
  for (let i = 0; i <= fitting; i += 1) {
    await queues.enqueue('q', new Uint8Array(VALUE_BYTES_MAX));
  }
  assert.equal((await queues.lease('q', { max: 100 })).length, fitting);
  assert.equal((await queues.lease('q', { max: 100 })).length, 1);
}

async function waits(harness: StoreHarness) {
  const { queues } = harness.store;
  await queues.define('q', LIMITS);
  const waiting = queues.lease('q', { waitMs: 60_000 });
  await queues.enqueue('q', bytes('a'));
  const [held] = await waiting;
  assert.equal(text(held?.value), 'a');
  const patient = queues.lease('q', { waitMs: 60_000 });
  await harness.advance(1001);
  assert.equal((await patient)[0]?.delivery, 2);
  const timed = queues.lease('q', { waitMs: 500 });
  await harness.advance(501);
  assert.deepEqual(await timed, []);
  const abort = new AbortController();
  const aborted = queues.lease('q', { waitMs: 60_000, signal: abort.signal });
  abort.abort();
  assert.deepEqual(await aborted, []);
}

async function redefines(harness: StoreHarness) {
  const { queues } = harness.store;
  await refused('not-found', () => queues.enqueue('q', bytes('x')));
  await fill(harness, 2, { ...LIMITS, depthMax: 2 });
  await queues.define('q', { ...LIMITS, depthMax: 3, leaseMs: 5000 });
  await queues.enqueue('q', bytes('2'));
  const item = await leaseOne(harness);
  await harness.advance(4000);
  await queues.ack(item);
  const waiting = refused('not-found', async () => {
    await queues.lease('q', { max: 3 });
    await queues.lease('q', { waitMs: 60_000 });
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  await queues.remove('q');
  await waiting;
  await queues.remove('q');
  for (const work of [() => queues.stats('q'), () => queues.dead('q'), () => queues.ack(item)]) {
    await refused('not-found', work);
  }
  await queues.define('q', LIMITS);
  assert.deepEqual(await queues.stats('q'), { depth: 0, leased: 0, dead: 0, deadDropped: 0 });
  assert.deepEqual(await queues.lease('q'), []);
}

async function refusesArguments({ store: { queues } }: StoreHarness) {
  for (const field of ['leaseMs', 'deliveriesMax', 'depthMax', 'deadMax']) {
    await refused('invalid-argument', () => queues.define('q', { ...LIMITS, [field]: 0 }));
  }
  await queues.define('q', LIMITS);
  await refused('too-large', () => queues.enqueue('q', new Uint8Array(VALUE_BYTES_MAX + 1)));
  for (const name of ['', 'a/', '..', 'a b']) {
    await refused('invalid-argument', () => queues.define(name, LIMITS));
    await refused('invalid-argument', () => queues.enqueue(name, bytes('x')));
    await refused('invalid-argument', () => queues.lease(name));
    await refused('invalid-argument', () => queues.stats(name));
    await refused('invalid-argument', () => queues.remove(name));
  }
  await refused('invalid-argument', () => queues.lease('q', { max: 0 }));
  await refused('invalid-argument', () => queues.lease('q', { waitMs: -1 }));
  await refused('invalid-argument', () => queues.dead('q', { limit: 0 }));
  await refused('conflict', () => queues.ack({ queue: 'q', sequence: 1, token: 'forged' }));
}
