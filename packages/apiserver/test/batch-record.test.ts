import { BATCH_COUNT_MAX } from '@dsec/protocol';
import { type Digest, type EdgeId, parseSandboxId, type ShardId, systemRandom } from '@dsec/std';
import { createMemoryStore, VALUE_BYTES_MAX } from '@dsec/store';
import { expect, test } from 'vitest';
import {
  BatchRecord,
  createBatchLedger,
  createUnkeyedLedger,
  newBatchRecord,
  placeIn,
  sandboxIdIn,
} from '../src/create/batch-record.ts';
import { createRecords } from '../src/create/create-record.ts';

const digest = `sha256:${'a'.repeat(64)}` as Digest;
const [A, B, C] = ['a', 'b', 'c'] as unknown as [EdgeId, EdgeId, EdgeId];
const shard = 's1' as ShardId;

test('ids come from the record alone, each once, and change with a move', () => {
  const record = newBatchRecord(digest, [A, B, A], {}, systemRandom);
  const ids = [0, 1, 2].map((index) => sandboxIdIn(record, index, placeIn(record, index), shard));
  expect(new Set(ids).size).toBe(3);
  expect(ids.map((id) => parseSandboxId(id).edge)).toEqual([A, B, A]);
  expect(sandboxIdIn({ ...record }, 1, placeIn(record, 1), shard)).toBe(ids[1]);
  expect(sandboxIdIn(record, 1, { edge: A, moves: 1 }, shard)).not.toBe(ids[1]);
});

test('the largest batch fits into one record of the store', () => {
  const edges = Array.from({ length: 160 }, (_, index) => `edge${index}` as EdgeId);
  const placed = Array.from({ length: BATCH_COUNT_MAX }, (_, i) => edges[i % 160] as EdgeId);
  const moves = placed.map(() => 2);
  const record = { ...newBatchRecord(digest, placed, {}, systemRandom), moves };
  expect(JSON.stringify(record).length).toBeLessThan(VALUE_BYTES_MAX);
});

test('without a key moves are remembered in memory', async () => {
  const ledger = createUnkeyedLedger(newBatchRecord(digest, [A, A], {}, systemRandom));
  await ledger.move(1, B);
  expect([0, 1].map((index) => placeIn(ledger.record, index))).toEqual([
    { edge: A, moves: 0 },
    { edge: B, moves: 1 },
  ]);
});

test('of two who move the same sandbox, the first one is followed by both', async () => {
  const records = createRecords(createMemoryStore().keys, BatchRecord);
  const value = newBatchRecord(digest, [A, A, A], {}, systemRandom);
  const claimed = await records.claim('creates/p/x', value, digest);
  const one = createBatchLedger(records, 'creates/p/x', claimed);
  const two = createBatchLedger(records, 'creates/p/x', claimed);
  await one.move(0, B);
  expect(await two.isCurrent(0, { edge: A, moves: 0 })).toBe(false);
  await two.move(1, C);
  await Promise.all([one.move(2, B), two.move(2, C)]);
  for (const ledger of [one, two]) await ledger.isCurrent(0, { edge: A, moves: 0 });
  expect(one.record).toEqual(two.record);
  expect(placeIn(one.record, 0)).toEqual({ edge: B, moves: 1 });
  expect(placeIn(one.record, 1)).toEqual({ edge: C, moves: 1 });
  expect(placeIn(one.record, 2).moves).toBe(1);
});
