import type { RefRecord } from '@dsec/layers';
import { createMemoryStore } from '@dsec/store';
import { expect, test } from 'vitest';
import { createRefOwners } from '../src/layers/ref-owners.ts';

const refOf = (ref: string, createdAtMs = 1): RefRecord =>
  ({ ref, layerId: `sha256:${'0'.repeat(64)}`, createdAtMs }) as RefRecord;

test('a name is of the project that made it first, and only in that making', async () => {
  const { keys } = createMemoryStore();
  const owners = createRefOwners(keys);
  for (const name of ['base/one:1.0.0', 'base/dotted.:1.0.0-rc.1']) {
    const ref = refOf(name);
    expect(await owners.projectOf(ref)).toBeUndefined();
    await owners.note(ref, 'mine');
    await owners.note(ref, 'theirs');
    expect(await owners.projectOf(ref)).toBe('mine');
    // Removed and made anew, by the command line.
    const again = refOf(name, 2);
    expect(await owners.projectOf(again)).toBeUndefined();
    await owners.note(again, 'theirs');
    expect(await owners.projectOf(again)).toBe('theirs');
    await owners.forget(ref);
    expect(await owners.projectOf(again)).toBe('theirs');
    await owners.forget(again);
    expect(await owners.projectOf(again)).toBeUndefined();
  }
});

test('a record that is damaged makes nobody the owner', async () => {
  const { keys } = createMemoryStore();
  const owners = createRefOwners(keys);
  await owners.note(refOf('base/one:1.0.0'), 'mine');
  const [entry] = (await keys.list('layer-refs/')).entries;
  await keys.put(String(entry?.key), Buffer.from('{'));
  expect(await owners.projectOf(refOf('base/one:1.0.0'))).toBeUndefined();
});
