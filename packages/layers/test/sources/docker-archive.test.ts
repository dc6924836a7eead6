import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { importDockerArchive } from '../../src/sources/docker-archive.ts';
import { openImageArchive } from '../../src/sources/image-files.ts';
import type { ImageChoice } from '../../src/sources/image-layers.ts';
import { hostPlatform } from '../../src/sources/image-platform.ts';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { createPace } from '../../src/sources/pace.ts';
import {
  addBlob,
  blobPath,
  digestOf,
  type ImageTree,
  jsonOf,
  layer,
  OCI,
  savedImage,
  withChange,
  writeTar,
} from './image-encoder.ts';
import { createRecordingBuilder } from './recording-builder.ts';
import { errorWith, scratchDirectory } from './scratch.ts';
import { tarMember } from './tar-encoder.ts';

const scratch = scratchDirectory();
let count = 0;

async function importTree(
  tree: ImageTree,
  choice: Partial<ImageChoice> = {},
  more: readonly Buffer[] = [],
) {
  count += 1;
  const path = writeTar(join(scratch, `${count}.tar`), tree, more);
  const context = { limits: IMPORT_LIMITS_DEFAULT, pace: createPace() };
  const files = await openImageArchive(path, context);
  const builder = createRecordingBuilder();
  try {
    const full = { platform: hostPlatform(), ...choice };
    const imported = await importDockerArchive(files, builder, full, context);
    return { ...imported, calls: builder.calls };
  } finally {
    files.close();
  }
}

const one = layer(tarMember({ name: 'a' }, '1'));
const two = layer(tarMember({ name: '.wh.a' }), tarMember({ name: 'b' }, '22'));
const calls = ['file a 1', 'layer', 'whiteout a', 'file b 2'];

it('reads the older form', async () => {
  const tree = savedImage([one, two]);
  const [config] = [...tree.keys()];
  expect(await importTree(tree)).toEqual({
    calls,
    digest: `sha256:${config?.slice(0, 64)}`,
    image: { env: ['A=1'], workdir: '', user: '', entrypoint: [], command: ['sh'] },
  });
});

it('reads a layer that is a link to an equal one', async () => {
  const tree = savedImage([one, two, one]);
  const names = [...tree.keys()].filter((name) => name.endsWith('layer.tar'));
  tree.delete(names[2] ?? '');
  const link = tarMember({ name: names[2] ?? '', type: '2', link: `../${names[0]}` });
  expect((await importTree(tree, {}, [link])).calls).toEqual([...calls, 'layer', 'file a 1']);
});

it('reads compressed layers, and the names of other writers', async () => {
  const zipped = { bytes: gzipSync(two.bytes), tar: two.bytes };
  const tree = savedImage([one, zipped]);
  const [configName = ''] = [...tree.keys()];
  const config = tree.get(configName) ?? Buffer.alloc(0);
  const layerName = `${digestOf(zipped.bytes).slice(7)}.tar.gz`;
  const renamed: ImageTree = new Map([
    [digestOf(config), config],
    ['base.tar', one.bytes],
    [layerName, zipped.bytes],
  ]);
  renamed.set(
    'manifest.json',
    jsonOf([{ Config: digestOf(config), RepoTags: null, Layers: ['base.tar', layerName] }]),
  );
  expect((await importTree(renamed)).calls).toEqual(calls);
});

it('reads the newer form, whose files are blobs', async () => {
  const tree: ImageTree = new Map();
  const config = addBlob(
    tree,
    OCI.config,
    jsonOf({
      ...hostPlatform(),
      rootfs: { type: 'layers', diff_ids: [digestOf(one.bytes), digestOf(two.bytes)] },
    }),
  );
  const layers = [one, two].map(({ bytes }) => addBlob(tree, OCI.tar, bytes));
  const entry = {
    Config: blobPath(config.digest),
    RepoTags: ['x:1'],
    Layers: layers.map(({ digest }) => blobPath(digest)),
    LayerSources: {},
  };
  tree.set('manifest.json', jsonOf([entry]));
  expect(await importTree(tree)).toMatchObject({ calls, digest: config.digest });
});

describe('the choice', () => {
  const tree = savedImage([one]);
  const [config] = [...tree.keys()];
  const layers = [...tree.keys()].filter((name) => name.endsWith('layer.tar'));
  const several = new Map(tree);
  several.set(
    'manifest.json',
    jsonOf([
      { Config: config, RepoTags: ['a:1', 'a:2'], Layers: layers },
      { Config: config, RepoTags: ['b:1'], Layers: layers },
    ]),
  );

  it('is by tag', async () => {
    expect((await importTree(several, { reference: 'a:2' })).calls).toEqual(['file a 1']);
  });
  it('must be made', async () => {
    await expect(importTree(several)).rejects.toThrowError(
      errorWith('invalid-argument', /"a:1", "a:2", "b:1"/),
    );
    await expect(importTree(several, { reference: 'c' })).rejects.toThrowError(
      errorWith('not-found'),
    );
  });
  it('is of a platform', async () => {
    const platform = { os: 'linux', architecture: 's390x' };
    await expect(importTree(tree, { platform })).rejects.toThrowError(
      errorWith('import-invalid', /s390x/),
    );
  });
});

describe('lies', () => {
  it.each<[string, object, RegExp]>([
    ['a layer outside', { Layers: ['../../etc/passwd'] }, /names a file/],
    ['a layer by an absolute path', { Layers: ['/etc/passwd'] }, /names a file/],
    ['a hidden part', { Layers: ['a/./b'] }, /names a file/],
    ['an empty part', { Layers: ['a//b'] }, /names a file/],
    ['a NUL', { Layers: ['a\0b'] }, /names a file/],
    ['a layer that is missing', { Layers: ['nothing'] }, /missing/],
    ['no layers', { Layers: [] }, /no layers/],
    ['null for layers', { Layers: null }, /no layers/],
    ['a configuration without a digest', { Config: 'config.json' }, /has no digest/],
    ['a configuration outside', { Config: '../x' }, /names a file/],
    ['a configuration that is missing', { Config: `${'0'.repeat(64)}.json` }, /missing/],
  ])('%s', async (_, patch, message) => {
    await expect(importTree(savedImage([one], patch))).rejects.toThrowError(
      errorWith('import-invalid', message),
    );
  });

  it('changed files', async () => {
    for (const pattern of [/layer\.tar$/, /^[0-9a-f]{64}\.json$/]) {
      const tree = savedImage([one]);
      const [name = ''] = [...tree.keys()].filter((each) => pattern.test(each));
      const bytes = tree.get(name) ?? Buffer.alloc(0);
      tree.set(name, withChange(bytes, Math.min(512, bytes.length - 1)));
      await expect(importTree(tree)).rejects.toThrowError(
        errorWith('import-invalid', /has the digest/),
      );
    }
  });

  it('no list of images, or an empty one', async () => {
    await expect(importTree(new Map([['x', Buffer.alloc(1)]]))).rejects.toThrowError(
      errorWith('import-invalid', /missing/),
    );
    await expect(importTree(new Map([['manifest.json', jsonOf([])]]))).rejects.toThrowError(
      errorWith('import-invalid', /no image/),
    );
  });
});
