import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { listLayers, showLayer } from '../src/layer-list.ts';
import { createLayerStore } from '../src/store-directory.ts';
import { layerPaths, refsDirectory } from '../src/store-layout.ts';
import { publishFake } from './support/built-layer.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

it('tells a name whose layer is gone from a name that nobody gave', async () => {
  const store = await createLayerStore(await temporaryDirectory());
  const { layerId } = await publishFake(store, 'base/a:1.0.0', 'a');
  await rm(layerPaths(store, layerId).directory, { recursive: true });
  expect(await codeOf(showLayer(store, 'base/a:1.0.0'))).toBe('data-loss');
  expect(await codeOf(showLayer(store, 'base/b:1.0.0'))).toBe('not-found');
});

it('passes over files where directories of names belong', async () => {
  const store = await createLayerStore(await temporaryDirectory());
  await publishFake(store, 'base/a:1.0.0', 'a');
  await writeFile(join(refsDirectory(store), 'base', 'notes'), '');
  const listed: string[] = [];
  for await (const { record } of listLayers(store)) listed.push(record.ref);
  expect(listed).toEqual(['base/a:1.0.0']);
});
