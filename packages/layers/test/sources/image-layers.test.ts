import { join } from 'node:path';
import type { Digest } from '@dsec/std';
import { expect, it } from 'vitest';
import type { ImageConfigDocument } from '../../src/sources/image-documents.ts';
import { openImageDirectory } from '../../src/sources/image-files.ts';
import {
  ambiguous,
  importImageLayers,
  unknownReference,
  wrongPlatform,
} from '../../src/sources/image-layers.ts';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { createPace } from '../../src/sources/pace.ts';
import { digestOf, layer, writeTree } from './image-encoder.ts';
import { createRecordingBuilder } from './recording-builder.ts';
import { errorWith, scratchDirectory } from './scratch.ts';
import { tarMember } from './tar-encoder.ts';

const layers = ['a', 'b', 'c'].map((name) => layer(tarMember({ name })).bytes);
const directory = writeTree(
  join(scratchDirectory(), 'files'),
  new Map(layers.map((bytes, i) => [`${i}`, bytes])),
);
const platform = { os: 'linux', architecture: 'amd64' };
const config: ImageConfigDocument = {
  ...platform,
  rootfs: { type: 'layers', diff_ids: layers.map((bytes) => digestOf(bytes) as Digest) },
};
const claims = layers.map((_, i) => ({ name: `${i}` }));

async function importWith(
  given: ImageConfigDocument,
  names: readonly { name: string }[],
  limits = IMPORT_LIMITS_DEFAULT,
) {
  const files = openImageDirectory(directory);
  const builder = createRecordingBuilder();
  const context = { limits, pace: createPace() };
  try {
    await importImageLayers(files, given, names, builder, { platform }, context);
  } finally {
    files.close();
  }
  return builder.calls;
}

it('gives each layer as an image layer of its own', async () => {
  expect(await importWith(config, claims)).toEqual([
    'file a 0',
    'layer',
    'file b 0',
    'layer',
    'file c 0',
  ]);
});

it('refuses what does not fit together', async () => {
  const other = { ...config, architecture: 'arm64' };
  await expect(importWith(other, claims)).rejects.toThrowError(
    errorWith('import-invalid', /for linux\/amd64; there is: linux\/arm64/),
  );
  await expect(importWith(config, [])).rejects.toThrowError(errorWith('import-invalid'));
  await expect(importWith(config, claims.slice(1))).rejects.toThrowError(
    errorWith('import-invalid', /2 layers, but its configuration names 3/),
  );
  await expect(importWith(config, claims.toReversed())).rejects.toThrowError(
    errorWith('import-invalid', /digest/),
  );
  const limits = { ...IMPORT_LIMITS_DEFAULT, imageLayersMax: 2 };
  await expect(importWith(config, claims, limits)).rejects.toThrowError(errorWith('import-limit'));
});

it('says what there is, and not too much of it', () => {
  const many = Array.from({ length: 50 }, (_, i) => ({ os: 'linux', architecture: `a${i}` }));
  expect(wrongPlatform(many, platform).message).toMatch(/a15$/);
  expect(wrongPlatform([platform, platform], platform).message).toMatch(/is: linux\/amd64$/);
  expect(ambiguous(['a', 'b'])).toMatchObject({ code: 'invalid-argument' });
  expect(unknownReference('x', []).message).toMatch(/none with a name/);
});
