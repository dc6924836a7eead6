import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { digestOfHex } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { openNodeCopies } from '../src/node-copies.ts';
import { createLayerStore, readManifest } from '../src/store-directory.ts';
import { blobPaths, layerPaths, nodeLayerPaths } from '../src/store-layout.ts';
import { buildLayer } from './support/build-layer.ts';
import { compileFirst } from './support/compiled.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

compileFirst();

async function openWithLayer() {
  const store = await createLayerStore(await temporaryDirectory());
  const { layerId } = await buildLayer(store, 'base/b:1.0.0', (tree) => tree.file('a', 'data'));
  const directory = join(await temporaryDirectory(), 'node');
  return { store, layerId, directory, copies: await openNodeCopies(store, directory) };
}

describe('openNodeCopies', () => {
  it('gives a copy of the metadata that is of the node alone, and the data of the store', async () => {
    const { store, layerId, directory, copies } = await openWithLayer();
    const { metaPath, devicePaths } = await copies.prepare(layerId);
    expect(metaPath).toBe(nodeLayerPaths(directory, layerId).meta);
    expect(readFileSync(metaPath)).toEqual(readFileSync(layerPaths(store, layerId).meta));
    const { devices } = await readManifest(store, layerId);
    expect(devicePaths).toEqual(devices.map(({ blobId }) => blobPaths(store, blobId).data));
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  });

  it('says when there is no such layer', async () => {
    const { copies } = await openWithLayer();
    expect(await codeOf(copies.prepare(digestOfHex('f'.repeat(64))))).toBe('not-found');
  });

  it('can be given up', async () => {
    const { copies, layerId } = await openWithLayer();
    expect(await codeOf(copies.prepare(layerId, AbortSignal.abort()))).toBe('cancelled');
  });

  it('refuses a directory that others could write', async () => {
    const { store } = await openWithLayer();
    const directory = mkdtempSync(join(await temporaryDirectory(), 'node-'));
    chmodSync(directory, 0o755);
    expect(await codeOf(openNodeCopies(store, directory))).toBe('permission-denied');
    rmSync(directory, { recursive: true });
  });
});
