import { createHash } from 'node:crypto';
import { DsecError, hexOfDigest } from '@dsec/std';
import { BLOCKS_MAX, CHUNK_BLOCKS } from './format.ts';
import type { DedupSource } from './model.ts';

export const DIGEST_BYTES = 32;
/** sha256, first block, length in blocks. */
export const INDEX_ENTRY_BYTES = DIGEST_BYTES + 8;

export interface ChunkPlace {
  readonly block: number;
  readonly blocks: number;
}

/** A blob's index, checked, with lookup by digest. */
export interface DedupIndex {
  /** Blocks that the blob has at least: the end of its last chunk. */
  readonly blocks: number;
  /** `digest` as 32 characters of one byte each. */
  find(digest: string): ChunkPlace | undefined;
}

/** Throws `data-loss` when the index is not the one that the blob id names. */
export function openDedupIndex(source: DedupSource): DedupIndex {
  const bytes = Buffer.from(source.index.buffer, source.index.byteOffset, source.index.byteLength);
  const fail = (problem: string): never => {
    throw new DsecError('data-loss', `index of blob ${source.blobId}: ${problem}`);
  };
  if (createHash('sha256').update(bytes).digest('hex') !== hexOfDigest(source.blobId)) {
    fail('does not match its digest');
  }
  if (bytes.length % INDEX_ENTRY_BYTES !== 0) fail('is cut short');
  const count = bytes.length / INDEX_ENTRY_BYTES;

  let end = 0;
  for (let entry = 0; entry < count; entry += 1) {
    const { block, blocks } = placeAt(bytes, entry);
    if (blocks < 1 || blocks > CHUNK_BLOCKS || block + blocks > BLOCKS_MAX) fail('bad chunk');
    if (entry > 0 && compareEntries(bytes, entry - 1, entry) >= 0) fail('is not sorted');
    end = Math.max(end, block + blocks);
  }

  const key = Buffer.alloc(DIGEST_BYTES);
  return {
    blocks: end,
    find(digest) {
      key.write(digest, 0, 'latin1');
      let low = 0;
      let high = count;
      while (low < high) {
        const middle = (low + high) >>> 1;
        const start = middle * INDEX_ENTRY_BYTES;
        const order = bytes.compare(key, 0, DIGEST_BYTES, start, start + DIGEST_BYTES);
        if (order === 0) return placeAt(bytes, middle);
        if (order < 0) low = middle + 1;
        else high = middle;
      }
      return undefined;
    },
  };
}

function placeAt(bytes: Buffer, entry: number): ChunkPlace {
  const start = entry * INDEX_ENTRY_BYTES + DIGEST_BYTES;
  return { block: bytes.readUInt32LE(start), blocks: bytes.readUInt32LE(start + 4) };
}

function compareEntries(bytes: Buffer, a: number, b: number): number {
  const startA = a * INDEX_ENTRY_BYTES;
  const startB = b * INDEX_ENTRY_BYTES;
  return bytes.compare(bytes, startB, startB + DIGEST_BYTES, startA, startA + DIGEST_BYTES);
}
