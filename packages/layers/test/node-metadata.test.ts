import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ExpectedMetadata, prepareNodeMetadata } from '../src/node-metadata.ts';
import { createLayerStore, readManifest } from '../src/store-directory.ts';
import { layerPaths, nodeLayerPaths } from '../src/store-layout.ts';
import { buildLayer } from './support/build-layer.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

async function storeWithLayer() {
  const store = await createLayerStore(await temporaryDirectory());
  const { layerId } = await buildLayer(store, 'base/b:1.0.0', (tree) => tree.file('a', 'data'));
  const nodeDirectory = await temporaryDirectory();
  for (const name of ['layers', 'tmp']) mkdirSync(join(nodeDirectory, name));
  const layer: ExpectedMetadata = await readManifest(store, layerId);
  const job = { type: 'prepare', storeRoot: store.root, nodeDirectory, layer } as const;
  const source = layerPaths(store, layerId).meta;
  const copy = nodeLayerPaths(nodeDirectory, layerId).meta;
  return { job, layer, source, copy, nodeDirectory };
}

describe('prepareNodeMetadata', () => {
  it('copies metadata that is right, and keeps the copy', async () => {
    const { job, source, copy, nodeDirectory } = await storeWithLayer();
    await prepareNodeMetadata(job);
    expect(readFileSync(copy)).toEqual(readFileSync(source));
    expect(statSync(copy).mode & 0o777).toBe(0o444);
    const inode = statSync(copy).ino;
    // The store may go away: what was verified once is here.
    chmodSync(source, 0o644);
    writeFileSync(source, 'gone');
    await prepareNodeMetadata(job);
    expect(statSync(copy).ino).toBe(inode);
    expect(readdirSync(join(nodeDirectory, 'tmp'))).toEqual([]);
  });

  it('replaces a damaged copy', async () => {
    const { job, source, copy } = await storeWithLayer();
    writeFileSync(copy, 'damaged');
    await prepareNodeMetadata(job);
    expect(readFileSync(copy)).toEqual(readFileSync(source));
  });

  it('copies nothing that is wrong', async () => {
    const { job, source, nodeDirectory } = await storeWithLayer();
    const bytes = readFileSync(source);
    chmodSync(source, 0o644);
    writeFileSync(source, bytes.fill(1, 3000, 3001));
    expect(await codeOf(prepareNodeMetadata(job))).toBe('data-loss');
    writeFileSync(source, Buffer.concat([bytes, bytes]));
    expect(await codeOf(prepareNodeMetadata(job))).toBe('data-loss');
    expect(readdirSync(join(nodeDirectory, 'layers'))).toEqual([]);
    expect(readdirSync(join(nodeDirectory, 'tmp'))).toEqual([]);
  });

  it('refuses devices that the metadata does not name', async () => {
    const { job, layer, nodeDirectory } = await storeWithLayer();
    const [device] = layer.devices;
    if (device === undefined) throw new Error('the layer has a device');
    const wrong: ExpectedMetadata['devices'][] = [
      [],
      [device, device],
      [{ ...device, blobId: layer.layerId }],
      [{ ...device, blocks: device.blocks + 1 }],
      [{ ...device, blocks: 0 }],
    ];
    for (const devices of wrong) {
      const code = await codeOf(prepareNodeMetadata({ ...job, layer: { ...layer, devices } }));
      expect(code).toBe('layer-invalid');
    }
    expect(readdirSync(join(nodeDirectory, 'layers'))).toEqual([]);
  });
});
