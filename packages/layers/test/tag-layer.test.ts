import { readdir } from 'node:fs/promises';
import type { Digest } from '@dsec/std';
import { expect, it } from 'vitest';
import { listLayerIds } from '../src/layer-ids.ts';
import { parseLayerRef } from '../src/layer-ref.ts';
import { resolveRef } from '../src/ref-store.ts';
import { createLayerStore } from '../src/store-directory.ts';
import { stagesDirectory } from '../src/store-layout.ts';
import { tagLayer } from '../src/tag-layer.ts';
import { publishFake } from './support/built-layer.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

it('gives a layer further names, once each, and leaves nothing else', async () => {
  const store = await createLayerStore(await temporaryDirectory());
  const { layerId } = await publishFake(store, 'base/a:1.0.0', 'a');
  const ref = parseLayerRef('base/b:2.0.0');
  const first = await tagLayer(store, ref, layerId);
  expect(await tagLayer(store, ref, layerId)).toEqual(first);
  const [known, tagged] = [
    await resolveRef(store, 'base/a:^1'),
    await resolveRef(store, 'base/b:^2'),
  ];
  expect(tagged).toMatchObject({ layerId, image: known.image, source: known.source });
  expect(await readdir(stagesDirectory(store))).toEqual([]);
});

it('moves no name, and names nothing that is not there', async () => {
  const store = await createLayerStore(await temporaryDirectory());
  const one = await publishFake(store, 'base/a:1.0.0', 'a');
  const two = await publishFake(store, 'base/b:1.0.0', 'b');
  expect(await codeOf(tagLayer(store, parseLayerRef('base/a:1.0.0'), two.layerId))).toBe(
    'already-exists',
  );
  const absent = `sha256:${'0'.repeat(64)}` as Digest;
  expect(await codeOf(tagLayer(store, parseLayerRef('base/c:1.0.0'), absent))).toBe('not-found');
  expect(await listLayerIds(store)).toEqual([one.layerId, two.layerId].sort());
});

it('makes a name that of exactly one of those who make it at once, and of nobody else later', async () => {
  const store = await createLayerStore(await temporaryDirectory());
  const { layerId } = await publishFake(store, 'base/a:1.0.0', 'a');
  const ref = parseLayerRef('base/race:1.0.0');
  const owners = Array.from({ length: 12 }, (_, n) => `project-${n}`);
  const told = await Promise.all(owners.map((owner) => tagLayer(store, ref, layerId, owner)));
  const found = await resolveRef(store, 'base/race:1.0.0');
  expect(owners).toContain(found.owner);
  expect(told.every(({ owner }) => owner === found.owner)).toBe(true);
  expect((await tagLayer(store, ref, layerId, 'late')).owner).toBe(found.owner);
  expect((await resolveRef(store, 'base/a:1.0.0')).owner).toBeUndefined();
});
