import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { openImageArchive, openImageDirectory } from '../../src/sources/image-files.ts';
import type { ImageChoice } from '../../src/sources/image-layers.ts';
import { hostPlatform } from '../../src/sources/image-platform.ts';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { importOciLayout } from '../../src/sources/oci-layout.ts';
import { createPace } from '../../src/sources/pace.ts';
import {
  addBlob,
  addImage,
  blobPath,
  type ImageTree,
  jsonOf,
  layer,
  layoutOf,
  OCI,
  simpleLayout,
  withChange,
  writeTar,
  writeTree,
} from './image-encoder.ts';
import { createRecordingBuilder } from './recording-builder.ts';
import { errorWith, scratchDirectory } from './scratch.ts';
import { tarMember } from './tar-encoder.ts';

const scratch = scratchDirectory();
const host = hostPlatform();
const foreign = { os: 'linux', architecture: 's390x' };
let count = 0;

function place(tree: ImageTree): string {
  count += 1;
  return writeTree(join(scratch, `${count}`), tree);
}

async function importFrom(
  directory: string,
  choice: Partial<ImageChoice> = {},
  limits = IMPORT_LIMITS_DEFAULT,
) {
  const files = openImageDirectory(directory);
  const builder = createRecordingBuilder();
  const pace = createPace();
  try {
    const imported = await importOciLayout(
      files,
      builder,
      { platform: host, ...choice },
      { limits, pace },
    );
    return { ...imported, calls: builder.calls, pace };
  } finally {
    files.close();
  }
}

const importTree = (
  tree: ImageTree,
  choice?: Partial<ImageChoice>,
  limits?: typeof IMPORT_LIMITS_DEFAULT,
) => importFrom(place(tree), choice, limits);

const refuses = (tree: ImageTree, message: RegExp, choice?: Partial<ImageChoice>) =>
  expect(importTree(tree, choice)).rejects.toThrowError(errorWith('import-invalid', message));

const one = layer(tarMember({ name: 'a' }, '1'), tarMember({ name: 'b' }, '2'));
const two = layer(tarMember({ name: '.wh.a' }), tarMember({ name: 'c' }, '3'));
const zipped = {
  bytes: gzipSync(two.bytes),
  tar: two.bytes,
  mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
};
const zstd = {
  bytes: execFileSync('zstd', ['-qc'], { input: two.bytes }),
  tar: two.bytes,
  mediaType: OCI.zstd,
};
const named = (descriptor: object, name: string) => ({
  ...descriptor,
  annotations: { 'org.opencontainers.image.ref.name': name },
});

it('applies the layers in order and tells the digest and the configuration', async () => {
  const tree: ImageTree = new Map();
  const descriptor = addImage(tree, {
    layers: [one, zipped, zstd],
    config: { Env: ['A=1'], WorkingDir: '/w', User: 'u', Entrypoint: ['e'], Cmd: ['c'] },
  });
  const result = await importTree(layoutOf(tree, [descriptor]));
  expect(result).toMatchObject({
    digest: descriptor.digest,
    image: { env: ['A=1'], workdir: '/w', user: 'u', entrypoint: ['e'], command: ['c'] },
    calls: [
      'file a 1',
      'file b 1',
      'layer',
      'whiteout a',
      'file c 1',
      'layer',
      'whiteout a',
      'file c 1',
    ],
  });
  const total = one.bytes.length + zipped.bytes.length + zstd.bytes.length;
  expect(result.pace.bytesTotal).toBe(total);
  expect(result.pace.bytes).toBe(total);
});

it('reads a layout in a tar where it lies', async () => {
  const path = writeTar(join(scratch, 'layout.tar'), simpleLayout({ layers: [one, zipped] }));
  const context = { limits: IMPORT_LIMITS_DEFAULT, pace: createPace() };
  const files = await openImageArchive(path, context);
  const builder = createRecordingBuilder();
  await importOciLayout(files, builder, { platform: host }, context);
  expect(builder.calls).toHaveLength(5);
  files.close();
});

describe('the choice', () => {
  const tree: ImageTree = new Map();
  const mine = addImage(tree, { layers: [one] });
  const other = addImage(tree, { layers: [two] });
  const theirs = addImage(tree, { layers: [zipped], platform: foreign });
  const nested = (...manifests: object[]) =>
    addBlob(tree, OCI.index, jsonOf({ schemaVersion: 2, mediaType: OCI.index, manifests }));
  const onHost = { ...mine, platform: host };
  const elsewhere = { ...theirs, platform: foreign };
  const attestation = { ...other, platform: { os: 'unknown', architecture: 'unknown' } };

  it.each<[string, object[], Partial<ImageChoice>, string]>([
    ['the only one', [mine], {}, mine.digest],
    ['one for this machine', [elsewhere, onHost, attestation], {}, mine.digest],
    ['one for another machine', [elsewhere, onHost], { platform: foreign }, theirs.digest],
    ['the first that fits in a nested index', [nested(elsewhere, onHost, other)], {}, mine.digest],
    ['one below two indexes', [nested(nested(onHost))], {}, mine.digest],
    ['one by name', [named(mine, 'a'), named(other, 'b')], { reference: 'b' }, other.digest],
    [
      "one by docker's name",
      [mine, { ...other, annotations: { 'io.containerd.image.name': 'docker.io/library/x:1' } }],
      { reference: 'docker.io/library/x:1' },
      other.digest,
    ],
    ['one under two names', [named(mine, 'a'), named(mine, 'b')], {}, mine.digest],
    [
      'of one name by platform',
      [named(elsewhere, 'a'), named(onHost, 'a')],
      { reference: 'a' },
      mine.digest,
    ],
  ])('is %s', async (_, manifests, choice, digest) => {
    const layout = layoutOf(new Map(tree), manifests);
    expect((await importTree(layout, choice)).digest).toBe(digest);
  });

  it.each<[string, object[], Partial<ImageChoice>, string, RegExp]>([
    ['several images', [named(mine, 'a'), named(other, 'b')], {}, 'invalid-argument', /"a", "b"/],
    [
      'none of that name',
      [named(mine, 'a'), other],
      { reference: 'z' },
      'not-found',
      /"a", sha256:/,
    ],
    [
      'none for this machine',
      [elsewhere, attestation],
      {},
      'import-invalid',
      /linux\/s390x, unknown/,
    ],
    [
      'another machine than the index says',
      [{ ...theirs, platform: host }],
      {},
      'import-invalid',
      /no image for/,
    ],
    ['another machine where the index says nothing', [theirs], {}, 'import-invalid', /s390x/],
    ['no image at all', [], {}, 'import-invalid', /there is: none/],
    ['indexes without an end', [nested(nested(nested(onHost)))], {}, 'import-invalid', /too deep/],
    [
      'an unknown kind of manifest',
      [{ ...mine, mediaType: 'text/plain' }],
      {},
      'import-invalid',
      /text\/plain/,
    ],
  ])('is refused: %s', async (_, manifests, choice, code, message) => {
    const layout = layoutOf(new Map(tree), manifests);
    await expect(importTree(layout, choice)).rejects.toThrowError(errorWith(code, message));
  });

  it('looks at a bounded number of manifests', async () => {
    const limits = { ...IMPORT_LIMITS_DEFAULT, imageManifestsMax: 10 };
    const many = Array.from({ length: 20 }, () => elsewhere);
    await expect(importTree(layoutOf(new Map(tree), many), {}, limits)).rejects.toThrowError(
      errorWith('import-limit'),
    );
    const wide = nested(...Array.from({ length: 9 }, () => nested(elsewhere, elsewhere)));
    await expect(importTree(layoutOf(new Map(tree), [wide]), {}, limits)).rejects.toThrowError(
      errorWith('import-limit'),
    );
  });
});

describe('lies', () => {
  it('a blob with other content', async () => {
    for (const victim of ['layer', 'config', 'manifest'] as const) {
      const tree: ImageTree = new Map();
      const manifest = addImage(tree, { layers: [one] });
      const bytes = tree.get(blobPath(manifest.digest)) ?? Buffer.alloc(0);
      const document = JSON.parse(bytes.toString());
      const digest = {
        layer: document.layers[0].digest,
        config: document.config.digest,
        manifest: manifest.digest,
      }[victim];
      const victimBytes = tree.get(blobPath(digest)) ?? Buffer.alloc(0);
      tree.set(blobPath(digest), withChange(victimBytes, Math.min(512, victimBytes.length - 3)));
      await refuses(layoutOf(tree, [manifest]), /has the digest/);
      tree.delete(blobPath(digest));
      await refuses(tree, /is missing/);
    }
  });

  const patched = (patchManifest: object, layers = [one]) =>
    simpleLayout({ layers, patchManifest });
  const badDigest = { mediaType: OCI.tar, digest: 'sha256:../../../etc/passwd', size: 5 };

  it.each<[string, () => ImageTree, RegExp]>([
    ['no layers', () => simpleLayout({ layers: [] }), /no layers/],
    ['fewer layers than the configuration', () => patched({ layers: [] }), /no layers/],
    [
      'a layer of an unknown kind',
      () =>
        simpleLayout({
          layers: [{ ...one, mediaType: 'application/vnd.oci.image.layer.v1.tar+xz' }],
        }),
      /tar\+xz/,
    ],
    [
      'a foreign layer',
      () =>
        simpleLayout({
          layers: [
            { ...one, mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip' },
          ],
        }),
      /foreign/,
    ],
    [
      'gzip that is none',
      () => simpleLayout({ layers: [{ ...one, mediaType: OCI.gzip }] }),
      /media type/,
    ],
    [
      'plain that is gzip',
      () => simpleLayout({ layers: [{ ...zipped, mediaType: OCI.tar }] }),
      /media type/,
    ],
    ['a path for a digest', () => patched({ layers: [badDigest] }), /expected form/],
    ['an index for a manifest', () => patched({ mediaType: OCI.index }), /expected form/],
    [
      "docker's manifest for OCI's",
      () => patched({ mediaType: 'application/vnd.docker.distribution.manifest.v2+json' }),
      /media type is not/,
    ],
    ['a manifest that is an index too', () => patched({ manifests: [] }), /expected form/],
    [
      'a configuration of another kind',
      () => patched({ config: { ...badDigest, digest: `sha256:${'0'.repeat(64)}` } }),
      /cannot be imported/,
    ],
    [
      'contents of another number',
      () =>
        simpleLayout({ layers: [one], patchConfig: { rootfs: { type: 'layers', diff_ids: [] } } }),
      /1 layers, but its configuration names 0/,
    ],
    [
      'contents of another digest',
      () =>
        simpleLayout({
          layers: [zipped],
          patchConfig: { rootfs: { type: 'layers', diff_ids: [`sha256:${'0'.repeat(64)}`] } },
        }),
      /has the digest/,
    ],
    [
      'a layer that is no tar',
      () => simpleLayout({ layers: [{ bytes: Buffer.alloc(2000, 'x') }] }),
      /checksum/,
    ],
    [
      'a layer that leads outside',
      () => simpleLayout({ layers: [layer(tarMember({ name: '../x' }))] }),
      /"\.\."/,
    ],
  ])('%s', async (_, make, message) => {
    await refuses(make(), message);
  });

  it('another size', async () => {
    const tree: ImageTree = new Map();
    const manifest = addImage(tree, { layers: [one] });
    await refuses(layoutOf(tree, [{ ...manifest, size: manifest.size + 1 }]), /bytes, not/);
  });

  it('a missing layer, before anything is applied', async () => {
    const tree = simpleLayout({ layers: [one, two] });
    const [last] = [...tree.keys()].filter((name) => tree.get(name) === two.bytes);
    tree.delete(last ?? '');
    const builder = createRecordingBuilder();
    const files = openImageDirectory(place(tree));
    const context = { limits: IMPORT_LIMITS_DEFAULT, pace: createPace() };
    const importing = importOciLayout(files, builder, { platform: host }, context);
    await expect(importing).rejects.toThrowError(errorWith('import-invalid', /missing/));
    expect(builder.calls).toEqual([]);
    files.close();
  });

  it('a link for a blob, or for the directory of blobs', async () => {
    const linked = place(simpleLayout({ layers: [one] }));
    renameSync(join(linked, 'blobs'), join(linked, 'elsewhere'));
    symlinkSync('elsewhere', join(linked, 'blobs'));
    await expect(importFrom(linked)).rejects.toThrowError(errorWith('import-invalid', /safely/));

    const tree = simpleLayout({ layers: [one] });
    const [blob] = [...tree.keys()].filter((name) => tree.get(name) === one.bytes);
    const directory = place(tree);
    const path = join(directory, blob ?? '');
    renameSync(path, join(directory, 'real'));
    symlinkSync('../../real', path);
    await expect(importFrom(directory)).rejects.toThrowError(errorWith('import-invalid', /safely/));
    rmSync(path);
    mkdirSync(path);
    await expect(importFrom(directory)).rejects.toThrowError(errorWith('import-invalid'));
  });

  it('a huge document, and more layers than the limit', async () => {
    const limits = { ...IMPORT_LIMITS_DEFAULT, imageDocumentBytesMax: 2000, imageLayersMax: 2 };
    const huge = simpleLayout({ layers: [one], patchConfig: { history: 'x'.repeat(2000) } });
    await expect(importTree(huge, {}, limits)).rejects.toThrowError(errorWith('import-limit'));
    const many = simpleLayout({ layers: [one, two, one] });
    await expect(importTree(many, {}, limits)).rejects.toThrowError(errorWith('import-limit'));
    const index = layoutOf(new Map(), [], { annotations: { a: 'x'.repeat(2000) } });
    await expect(importTree(index, {}, limits)).rejects.toThrowError(errorWith('import-limit'));
  });

  it('no layout, or one of another version', async () => {
    const tree = simpleLayout({ layers: [one] });
    tree.set('oci-layout', jsonOf({ imageLayoutVersion: '2.0.0' }));
    await refuses(tree, /oci-layout/);
    tree.delete('oci-layout');
    await refuses(tree, /missing/);
  });
});
