import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createLayerStore } from '../src/store-directory.ts';
import { blobPaths, layerPaths, stagesDirectory } from '../src/store-layout.ts';
import { fakeLayer, publishFake } from './support/built-layer.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

describe('publishLayer', () => {
  it('puts everything in its place, read-only, and leaves no stage', async () => {
    const store = await createLayerStore(await temporaryDirectory());
    const record = await publishFake(store, 'base/a:1.0.0', 'a');
    const { built, data } = fakeLayer('a');
    const layer = layerPaths(store, built.layerId);
    expect(record.layerId).toBe(built.layerId);
    expect((await readdir(layer.directory)).sort()).toEqual(['layer.json', 'meta.erofs']);
    expect(await readFile(layer.meta)).toEqual(built.meta);
    expect((await stat(layer.meta)).mode & 0o777).toBe(0o444);
    const blob = blobPaths(store, built.devices[0]?.blobId ?? built.layerId);
    expect(await readFile(blob.data)).toEqual(data);
    expect((await readdir(blob.directory)).sort()).toEqual(['data', 'index']);
    expect(await readdir(stagesDirectory(store))).toEqual([]);
  });

  it('finds what another process published and goes on', async () => {
    const store = await createLayerStore(await temporaryDirectory());
    const first = await publishFake(store, 'base/a:1.0.0', 'a');
    const inode = (await stat(layerPaths(store, first.layerId).meta)).ino;
    expect(await publishFake(store, 'base/a:1.0.0', 'a')).toEqual(first);
    expect((await publishFake(store, 'toolkit/other:2.0.0', 'a')).layerId).toBe(first.layerId);
    expect((await stat(layerPaths(store, first.layerId).meta)).ino).toBe(inode);
    expect(await readdir(join(store.root, 'layers'))).toHaveLength(1);
    expect(await readdir(join(store.root, 'blobs'))).toHaveLength(1);
  });

  it('says so when what is there is damaged, and does not touch it', async () => {
    const store = await createLayerStore(await temporaryDirectory());
    const { layerId } = await publishFake(store, 'base/a:1.0.0', 'a');
    const { meta } = layerPaths(store, layerId);
    await chmod(meta, 0o644);
    await writeFile(meta, Buffer.alloc(4096));
    expect(await codeOf(publishFake(store, 'base/b:1.0.0', 'a'))).toBe('data-loss');
    expect(await readFile(meta)).toEqual(Buffer.alloc(4096));
  });

  it('publishes nothing when the version names another layer', async () => {
    const store = await createLayerStore(await temporaryDirectory());
    await publishFake(store, 'base/a:1.0.0', 'a');
    expect(await codeOf(publishFake(store, 'base/a:1.0.0', 'b'))).toBe('already-exists');
    expect(await readdir(join(store.root, 'layers'))).toHaveLength(1);
    expect(await readdir(join(store.root, 'blobs'))).toHaveLength(1);
    expect(await readdir(stagesDirectory(store))).toEqual([]);
  });

  it('keeps a version from changing its environment', async () => {
    const store = await createLayerStore(await temporaryDirectory());
    const image = { env: ['A=1'], workdir: '/', user: 'root', entrypoint: [], command: ['sh'] };
    await publishFake(store, 'base/a:1.0.0', 'a', image);
    expect(await codeOf(publishFake(store, 'base/a:1.0.0', 'a', image))).toBe('no error');
    expect(await codeOf(publishFake(store, 'base/a:1.0.0', 'a', null))).toBe('already-exists');
  });
});
