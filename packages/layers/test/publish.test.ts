import { chmod, mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createLayerStore } from '../src/store-directory.ts';
import { blobPaths, layerPaths, stagesDirectory } from '../src/store-layout.ts';
import { fakeLayer, publishFake, publishFakeLayer } from './support/built-layer.ts';
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

  it('replaces what is damaged by a right file, and says so', async () => {
    const store = await createLayerStore(await temporaryDirectory());
    const { layerId } = await publishFake(store, 'base/a:1.0.0', 'a');
    const { built, data } = fakeLayer('a');
    const blob = blobPaths(store, built.devices[0]?.blobId ?? layerId);
    const layer = layerPaths(store, layerId);
    const damage: [string, (path: string) => Promise<unknown>][] = [
      [blob.data, (path) => overwrite(path, Buffer.alloc(data.length, 'x'))],
      [blob.data, (path) => rm(path)],
      [blob.index, (path) => overwrite(path, Buffer.alloc(40, 1))],
      [layer.meta, (path) => overwrite(path, Buffer.alloc(4096))],
      [layer.manifest, (path) => overwrite(path, '{}')],
      [layer.manifest, (path) => rm(path)],
    ];
    for (const [path, spoil] of damage) {
      const before = await readFile(path);
      await spoil(path);
      const { repaired } = await publishFakeLayer(store, 'base/a:1.0.0', 'a');
      expect(repaired).toEqual([relative(store.root, path)]);
      expect(await readFile(path)).toEqual(before);
      expect((await stat(path)).mode & 0o777).toBe(0o444);
    }
    expect((await publishFakeLayer(store, 'base/a:1.0.0', 'a')).repaired).toEqual([]);
    expect(await readdir(stagesDirectory(store))).toEqual([]);
  });

  it('repairs by rename: who reads the damaged file keeps it', async () => {
    const store = await createLayerStore(await temporaryDirectory());
    const { layerId } = await publishFake(store, 'base/a:1.0.0', 'a');
    const { meta } = layerPaths(store, layerId);
    const damaged = Buffer.alloc(4096);
    await overwrite(meta, damaged);
    const reader = await open(meta);
    await publishFake(store, 'base/b:1.0.0', 'a');
    expect(await reader.readFile()).toEqual(damaged);
    await reader.close();
    expect(await readFile(meta)).toEqual(fakeLayer('a').built.meta);
  });

  it.each(['data', 'directory'])(
    'removes nothing foreign in the place of a blob %s',
    async (what) => {
      const store = await createLayerStore(await temporaryDirectory());
      const { layerId } = await publishFake(store, 'base/a:1.0.0', 'a');
      const blob = blobPaths(store, fakeLayer('a').built.devices[0]?.blobId ?? layerId);
      const path = what === 'data' ? blob.data : blob.directory;
      await rm(path, { recursive: true });
      if (what === 'data') await mkdir(path);
      else await writeFile(path, 'kept');
      const attempt = publishFake(store, 'base/b:1.0.0', 'a');
      await expect(attempt).rejects.toThrow(/remove it by hand/);
      expect((await stat(path)).isDirectory()).toBe(what === 'data');
    },
  );

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

async function overwrite(path: string, bytes: Buffer | string): Promise<void> {
  await chmod(path, 0o644);
  await writeFile(path, bytes);
  await chmod(path, 0o444);
}
