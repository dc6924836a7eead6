import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Digest } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import {
  importLayerBlob,
  type LayerClaim,
  openImageFile,
  readDocument,
} from '../../src/sources/image-blob.ts';
import { openImageDirectory } from '../../src/sources/image-files.ts';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { createPace } from '../../src/sources/pace.ts';
import { digestOf, withChange } from './image-encoder.ts';
import { createRecordingBuilder } from './recording-builder.ts';
import { errorWith, scratchDirectory } from './scratch.ts';
import { tarMember, tarOf } from './tar-encoder.ts';

const scratch = scratchDirectory();
const files = openImageDirectory(scratch);
const limits = IMPORT_LIMITS_DEFAULT;
const digest = (bytes: Buffer) => digestOf(bytes) as Digest;

let count = 0;
function put(bytes: Buffer): string {
  count += 1;
  writeFileSync(join(scratch, `${count}`), bytes);
  return `${count}`;
}

describe('a document', () => {
  const bytes = Buffer.from('{"a": 1}');

  it('comes with its digest', () => {
    const expected = { bytes, digest: digestOf(bytes) };
    expect(readDocument(files, put(bytes), limits)).toEqual(expected);
    const claim = { digest: digest(bytes), size: bytes.length };
    expect(readDocument(files, put(bytes), limits, claim)).toEqual(expected);
    expect(readDocument(files, put(Buffer.alloc(0)), limits).bytes).toHaveLength(0);
  });

  it('is as it was described, or refused', () => {
    const read = (claim: { digest: Digest; size?: number }) =>
      readDocument(files, put(bytes), limits, claim);
    expect(() => read({ digest: digest(bytes), size: 7 })).toThrowError(
      errorWith('import-invalid', /has 8 bytes, not 7/),
    );
    expect(() => read({ digest: digest(Buffer.from('x')) })).toThrowError(
      errorWith('import-invalid', /has the digest/),
    );
    expect(() => readDocument(files, 'nothing', limits)).toThrowError(
      errorWith('import-invalid', /missing/),
    );
    const small = { ...limits, imageDocumentBytesMax: 7 };
    expect(() => readDocument(files, put(bytes), small)).toThrowError(errorWith('import-limit'));
  });
});

describe('a layer', () => {
  const tar = tarOf(tarMember({ name: 'f' }, 'content'));
  const gzip = gzipSync(tar);
  const zstd = execFileSync('zstd', ['-qc'], { input: tar });

  async function importClaim(stored: Buffer, claim: Omit<LayerClaim, 'name'>): Promise<string[]> {
    const builder = createRecordingBuilder();
    const context = { limits, pace: createPace() };
    await importLayerBlob(files, { name: put(stored), ...claim }, builder, context);
    return builder.calls;
  }
  const of = (bytes: Buffer) => ({ digest: digest(bytes), size: bytes.length });

  it.each<[string, Buffer, Omit<LayerClaim, 'name'>]>([
    ['plain', tar, { stored: of(tar), content: digest(tar), compression: 'none' }],
    ['gzip', gzip, { stored: of(gzip), content: digest(tar), compression: 'gzip' }],
    ['zstd', zstd, { stored: of(zstd), content: digest(tar), compression: 'zstd' }],
    ['plain, known by its content', tar, { content: digest(tar) }],
    ['gzip, known by its content', gzip, { content: digest(tar) }],
    ['zstd, known by its content', zstd, { content: digest(tar) }],
  ])('%s', async (_, stored, claim) => {
    expect(await importClaim(stored, claim)).toEqual(['file f 7']);
  });

  it('is checked to its last byte, beyond the end of the tar and of the compressed stream', async () => {
    const more = Buffer.alloc(3_000_000, 'more');
    const longTar = Buffer.concat([tar, more]);
    const longGzip = Buffer.concat([gzip, Buffer.alloc(3_000_000)]);
    const claims: [Buffer, Omit<LayerClaim, 'name'>][] = [
      [longTar, { stored: of(longTar), content: digest(longTar) }],
      [longTar, { content: digest(longTar) }],
      [longGzip, { stored: of(longGzip), content: digest(tar) }],
      [gzipSync(longTar), { stored: of(gzipSync(longTar)), content: digest(longTar) }],
    ];
    for (const [stored, claim] of claims) {
      expect(await importClaim(stored, claim)).toEqual(['file f 7']);
      const changed = withChange(stored, stored.length - 1);
      await expect(importClaim(changed, claim)).rejects.toThrowError(errorWith('import-invalid'));
    }
  });

  const other = digest(Buffer.from('other'));
  it.each<[string, Buffer, Omit<LayerClaim, 'name'>, RegExp]>([
    [
      'another size',
      tar,
      { stored: { ...of(tar), size: 1 }, content: digest(tar) },
      /bytes, not 1/,
    ],
    ['another digest', tar, { stored: { digest: other }, content: digest(tar) }, /digest/],
    ['another digest of gzip', gzip, { stored: { digest: other }, content: digest(tar) }, /digest/],
    ['another content', tar, { stored: of(tar), content: other }, /digest/],
    ['another content of gzip', gzip, { stored: of(gzip), content: other }, /digest/],
    ['another content alone', tar, { content: other }, /digest/],
    ['gzip for plain', gzip, { content: digest(tar), compression: 'none' }, /media type/],
    ['plain for gzip', tar, { content: digest(tar), compression: 'gzip' }, /media type/],
    ['zstd for gzip', zstd, { content: digest(tar), compression: 'gzip' }, /media type/],
    [
      'the digest of what is stored twice',
      gzip,
      { stored: of(gzip), content: digest(gzip) },
      /is compressed/,
    ],
    ['no tar', Buffer.alloc(1024, 'x'), { content: other }, /checksum/],
  ])('is refused for %s', async (_, stored, claim, message) => {
    await expect(importClaim(stored, claim)).rejects.toThrowError(
      errorWith('import-invalid', message),
    );
  });
});

it('is missing when it is', () => {
  expect(() => openImageFile(files, 'nothing')).toThrowError(
    errorWith('import-invalid', /missing/),
  );
});
