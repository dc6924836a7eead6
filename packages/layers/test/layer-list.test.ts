import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { listLayers, showLayer } from '../src/layer-list.ts';
import { parseLayerRef } from '../src/layer-ref.ts';
import { createLayerStore } from '../src/store-directory.ts';
import { type LayerStore, layerPaths, refPaths, refsDirectory } from '../src/store-layout.ts';
import { fakeLayer, publishFake } from './support/built-layer.ts';
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
  expect(await listed(store)).toEqual(['base/a:1.0.0']);
});

it('lists what is whole, and every damaged one by its name', async () => {
  const store = await createLayerStore(await temporaryDirectory());
  for (const [name, content] of ['abc', 'def', 'ghi', 'jkl', 'mno'].entries()) {
    await publishFake(store, `base/${content}:1.0.0`, String(name));
  }
  const broken = parseLayerRef('base/abc:1.0.0');
  await chmod(refPaths(store, broken).file, 0o644);
  await writeFile(refPaths(store, broken).file, '{');
  await rm(layerPaths(store, fakeLayer('1').built.layerId).directory, { recursive: true });
  await rm(layerPaths(store, fakeLayer('2').built.layerId).manifest);
  await mkdir(refPaths(store, parseLayerRef('base/jkl:2.0.0')).file);
  expect(await listed(store)).toEqual([
    'base/abc:1.0.0 data-loss',
    'base/def:1.0.0 data-loss',
    'base/ghi:1.0.0 data-loss',
    'base/jkl:2.0.0 data-loss',
    'base/jkl:1.0.0',
    'base/mno:1.0.0',
  ]);
});

async function listed(store: LayerStore): Promise<string[]> {
  const lines: string[] = [];
  for await (const found of listLayers(store)) {
    lines.push('error' in found ? `${found.ref} ${found.error.code}` : found.record.ref);
  }
  return lines;
}
