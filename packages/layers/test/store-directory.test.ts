import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { chmod, mkdir, readdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  checkBlobFile,
  createLayerStore,
  openLayerStore,
  readManifest,
} from '../src/store-directory.ts';
import { blobPaths, layerPaths } from '../src/store-layout.ts';
import { fakeLayer, publishFake } from './support/built-layer.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

describe('openLayerStore', () => {
  it('opens what was created, also twice', async () => {
    const root = join(await temporaryDirectory(), 'a', 'store');
    await createLayerStore(root);
    await createLayerStore(root);
    expect(await openLayerStore(root)).toEqual({ root });
  });

  it('refuses a directory that is no store', async () => {
    expect(await codeOf(openLayerStore(await temporaryDirectory()))).toBe('not-found');
  });
});

describe('readManifest', () => {
  it('gives the manifest of a published layer', async () => {
    const store = await createLayerStore(await temporaryDirectory());
    const { layerId } = await publishFake(store, 'base/a:1.0.0', 'a');
    const manifest = await readManifest(store, layerId);
    expect(manifest).toMatchObject({ layerId, metaBytes: 4096, devices: [{ bytes: 4096 }] });
  });

  it('says not-found for an unknown layer', async () => {
    const store = await createLayerStore(await temporaryDirectory());
    expect(await codeOf(readManifest(store, fakeLayer('x').built.layerId))).toBe('not-found');
  });

  const damages: [string, (path: string, text: string) => Promise<void>][] = [
    ['cut', (path, text) => writeFile(path, text.slice(0, -20))],
    ['empty', (path) => writeFile(path, '')],
    ['too large', (path) => writeFile(path, Buffer.alloc(2 ** 20 + 1, 0x20))],
    [
      'another layer',
      (path, text) => writeFile(path, text.replace(/[0-9a-f]{64}/, '0'.repeat(64))),
    ],
    ['unknown field', (path, text) => writeFile(path, text.replace('{', '{"extra": 1,'))],
    ['prototype', (path, text) => writeFile(path, text.replace('{', '{"__proto__": {"a": 1},'))],
    [
      'wrong bytes',
      (path, text) => writeFile(path, text.replace('"bytes": 4096', '"bytes": 8192')),
    ],
    [
      'huge number',
      (path, text) => writeFile(path, text.replace('"bytes": 4096', '"bytes": 1e300')),
    ],
    ['old format', (path, text) => writeFile(path, text.replace('"format": 1', '"format": 0'))],
    ['a link', (path) => rm(path).then(() => symlink('/etc/passwd', path))],
    ['a directory', (path) => rm(path).then(() => mkdir(path))],
    ['a FIFO', (path) => rm(path).then(() => void execFileSync('mkfifo', [path]))],
  ];

  it.each(damages)('refuses a manifest that is %s', async (_name, damage) => {
    const store = await createLayerStore(await temporaryDirectory());
    const { layerId } = await publishFake(store, 'base/a:1.0.0', 'a');
    const path = layerPaths(store, layerId).manifest;
    const text = JSON.stringify(await readManifest(store, layerId), null, 1);
    await chmod(path, 0o644);
    await damage(path, text);
    expect(await codeOf(readManifest(store, layerId))).toBe('data-loss');
  });
});

describe('checkBlobFile', () => {
  it('sees a blob that is short, absent or no file', async () => {
    const store = await createLayerStore(await temporaryDirectory());
    await publishFake(store, 'base/a:1.0.0', 'a');
    const { blob } = fakeLayer('a').built;
    if (blob === undefined) throw new Error('the fake layer has a blob');
    const wanted = { blobId: blob.blobId, bytes: 4096 };
    const { data } = blobPaths(store, blob.blobId);
    await checkBlobFile(store, wanted);
    await truncate(data, 100);
    expect(await codeOf(checkBlobFile(store, wanted))).toBe('data-loss');
    await rm(data);
    expect(await codeOf(checkBlobFile(store, wanted)), 'a name promises it').toBe('data-loss');
    await symlink('/dev/zero', data);
    expect(await codeOf(checkBlobFile(store, wanted))).toBe('data-loss');
  });
});

it('gives nobody else the right to write, whatever the umask', async () => {
  const place = await temporaryDirectory();
  const before = process.umask(0);
  try {
    const store = await createLayerStore(join(place, 'a', 'store'));
    await publishFake(store, 'base/a:1.0.0', 'a');
  } finally {
    process.umask(before);
  }
  const lax = (await readdir(place, { recursive: true })).filter((name) => {
    return (statSync(join(place, name)).mode & 0o022) !== 0;
  });
  expect(lax).toEqual([]);
});
