import { createHash } from 'node:crypto';
import { type Digest, digestOfHex } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { memorySource, openBlobIndex, verifyBlob } from '../src/index.ts';
import { addFile, build, noise } from './support/layers.ts';

const layer = build((b) => {
  for (let file = 0; file < 50; file += 1) addFile(b, `${file}`, noise(1000 + file * 3000, file));
});
const blob = layer.built.blob as { blobId: Digest; index: Uint8Array; blocks: number };

function nameOf(index: Uint8Array): Digest {
  return digestOfHex(createHash('sha256').update(index).digest('hex'));
}

describe('an index', () => {
  it('finds every chunk of its blob by digest', () => {
    const index = openBlobIndex(blob.blobId, blob.index);
    expect(index.count).toBe(blob.index.length / 40);
    expect(index.blocks).toBe(blob.blocks);
    for (let position = 0; position < index.count; position += 1) {
      const { digest, block, blocks } = index.chunk(position);
      const bytes = layer.blob.bytes.subarray(block * 4096, (block + blocks) * 4096);
      expect(createHash('sha256').update(bytes).digest().equals(digest)).toBe(true);
      expect(index.find(digest.toString('latin1'))).toEqual({ block, blocks });
    }
    expect(index.find('\0'.repeat(32))).toBeUndefined();
    expect(index.find('\xff'.repeat(32))).toBeUndefined();
  });

  const entry = (digest: number, block: number, blocks: number) => {
    const bytes = Buffer.alloc(40, digest);
    bytes.writeUInt32LE(block, 32);
    bytes.writeUInt32LE(blocks, 36);
    return bytes;
  };
  it.each([
    ['cut short', entry(1, 0, 1).subarray(0, 39)],
    ['not sorted', Buffer.concat([entry(2, 0, 1), entry(1, 1, 1)])],
    ['not sorted', Buffer.concat([entry(1, 0, 1), entry(1, 1, 1)])],
    ['bad chunk', entry(1, 0, 0)],
    ['bad chunk', entry(1, 0, 17)],
    ['bad chunk', entry(1, 0xffff_ffff, 1)],
  ])('that is wrong is refused: %s', (problem, bytes) => {
    expect(() => openBlobIndex(nameOf(bytes), bytes)).toThrow(problem);
  });

  it('of nothing is an index', () => {
    const nothing = Buffer.alloc(0);
    expect(openBlobIndex(nameOf(nothing), nothing)).toMatchObject({ count: 0, blocks: 0 });
  });
});

describe('verifyBlob', () => {
  const index = openBlobIndex(blob.blobId, blob.index);

  it('is content with the blob', () => {
    verifyBlob(index, memorySource(layer.blob.bytes));
  });

  it('finds one changed bit', () => {
    const damaged = Buffer.from(layer.blob.bytes);
    damaged[70_000] = (damaged[70_000] ?? 0) ^ 4;
    expect(() => verifyBlob(index, memorySource(damaged))).toThrow('does not match its digest');
  });

  it('finds a missing end', () => {
    const short = layer.blob.bytes.subarray(0, -4096);
    expect(() => verifyBlob(index, memorySource(short))).toThrow('cut short');
  });
});
