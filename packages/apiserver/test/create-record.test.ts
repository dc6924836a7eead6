import type { Identity } from '@dsec/iam';
import type { Digest, PrincipalId, ProjectId } from '@dsec/std';
import { createMemoryStore } from '@dsec/store';
import { expect, test } from 'vitest';
import { CreateRecord, createRecords } from '../src/create/create-record.ts';

const digest = `sha256:${'a'.repeat(64)}` as Digest;
const other = `sha256:${'b'.repeat(64)}` as Digest;
const value = (name: string) => ({
  ...{ format: 1 as const, digest, edge: 'e1', sandbox: `sb-s1-e1-${name.repeat(16)}` },
});
const identity = (project: string, principal = 'u'): Identity => ({
  ...{ keyId: 'k', scopes: [], project: project as ProjectId },
  principal: principal as PrincipalId,
});

function open() {
  const { keys } = createMemoryStore();
  return { keys, records: createRecords(keys, CreateRecord) };
}

test('who claims a key first has it; others find what that is', async () => {
  const { records } = open();
  const first = await records.claim('creates/p/x', value('a'), digest);
  const second = await records.claim('creates/p/x', value('b'), digest);
  expect([first.isNew, second.isNew]).toEqual([true, false]);
  expect(second.value).toEqual(value('a'));
  expect(await records.find('creates/p/y', digest)).toBeUndefined();
});

test('a key for another body is a conflict, wherever that is found', async () => {
  const { records } = open();
  await records.claim('creates/p/x', value('a'), digest);
  const conflict = expect.objectContaining({ code: 'idempotency-conflict' });
  await expect(records.find('creates/p/x', other)).rejects.toEqual(conflict);
  await expect(
    records.claim('creates/p/x', { ...value('a'), digest: other }, other),
  ).rejects.toEqual(conflict);
});

test('of two moves from the same place one wins', async () => {
  const { records } = open();
  const claimed = await records.claim('creates/p/x', value('a'), digest);
  const one = await records.move('creates/p/x', claimed, value('b'), digest);
  const two = await records.move('creates/p/x', claimed, value('c'), digest);
  expect([one.isNew, two.isNew]).toEqual([true, false]);
  expect(two.value).toEqual(value('b'));
  expect(await records.isRevision('creates/p/x', one.revision)).toBe(true);
  expect(await records.isRevision('creates/p/x', claimed.revision)).toBe(false);
});

test('names keep projects, principals, routes and keys apart', () => {
  const { records } = open();
  const names = [
    records.nameOf(identity('p'), 'createSandbox', 'k'),
    records.nameOf(identity('q'), 'createSandbox', 'k'),
    records.nameOf(identity('p', 'v'), 'createSandbox', 'k'),
    records.nameOf(identity('p'), 'createSandboxes', 'k'),
    records.nameOf(identity('p'), 'createSandbox', 'l'),
    records.nameOf(identity('p.'), 'createSandbox', 'k'),
  ];
  expect(new Set(names).size).toBe(names.length);
});

test('a damaged record is data loss, not a second sandbox', async () => {
  const { records, keys } = open();
  await keys.put('creates/p/x', Buffer.from('{}'));
  await expect(records.find('creates/p/x', digest)).rejects.toMatchObject({ code: 'data-loss' });
});
