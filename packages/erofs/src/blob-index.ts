/**
 * The index of a blob: its chunks by digest. It names the blob, so whoever has the right index knows what the
 * blob must hold, block for block.
 */
import { createHash } from 'node:crypto';
import { type Digest, DsecError, hexOfDigest } from '@dsec/std';
import { BLOCKS_MAX, CHUNK_BLOCKS } from './format.ts';
import type { ByteSource } from './image.ts';
import { BLOCK_BYTES } from './model.ts';

export const DIGEST_BYTES = 32;
/** sha256, first block, length in blocks. */
export const INDEX_ENTRY_BYTES = DIGEST_BYTES + 8;

export interface ChunkPlace {
  readonly block: number;
  readonly blocks: number;
}

export interface IndexedChunk extends ChunkPlace {
  readonly digest: Buffer;
}

export interface BlobIndex {
  readonly blobId: Digest;
  readonly count: number;
  /** Blocks that the blob has at least: the end of its last chunk. */
  readonly blocks: number;
  /** By position in the order of digests. */
  chunk(position: number): IndexedChunk;
  /** `digest` as 32 characters of one byte each. */
  find(digest: string): ChunkPlace | undefined;
}

/** Throws `data-loss` when the index is not the one that the blob id names. */
export function openBlobIndex(blobId: Digest, index: Uint8Array): BlobIndex {
  const bytes = Buffer.from(index.buffer, index.byteOffset, index.byteLength);
  if (createHash('sha256').update(bytes).digest('hex') !== hexOfDigest(blobId)) {
    throw lost(blobId, 'its index does not match its digest');
  }
  const count = bytes.length / INDEX_ENTRY_BYTES;
  const key = Buffer.alloc(DIGEST_BYTES);
  return {
    blobId,
    count,
    blocks: checkEntries(blobId, bytes),
    chunk: (position) => ({
      ...placeAt(bytes, position),
      digest: bytes.subarray(
        position * INDEX_ENTRY_BYTES,
        position * INDEX_ENTRY_BYTES + DIGEST_BYTES,
      ),
    }),
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

/** The positions of an index's chunks in the order of their blocks. */
export function positionsByBlock(index: BlobIndex): Uint32Array {
  const blocks = Uint32Array.from({ length: index.count }, (_, at) => index.chunk(at).block);
  const order = blocks.map((_, position) => position);
  return order.sort((a, b) => (blocks[a] as number) - (blocks[b] as number));
}

/** Reads every chunk of a blob and throws `data-loss` at the first that is not what the index says. */
export function verifyBlob(index: BlobIndex, data: ByteSource): void {
  if (data.sizeBytes < index.blocks * BLOCK_BYTES) throw lost(index.blobId, 'it is cut short');
  for (const position of positionsByBlock(index)) {
    const { digest, block, blocks } = index.chunk(position);
    const bytes = data.read(block * BLOCK_BYTES, blocks * BLOCK_BYTES);
    if (!createHash('sha256').update(bytes).digest().equals(digest)) {
      throw lost(index.blobId, `the chunk at block ${block} does not match its digest`);
    }
  }
}

function checkEntries(blobId: Digest, bytes: Buffer): number {
  if (bytes.length % INDEX_ENTRY_BYTES !== 0) throw lost(blobId, 'its index is cut short');
  const count = bytes.length / INDEX_ENTRY_BYTES;
  let end = 0;
  for (let entry = 0; entry < count; entry += 1) {
    const { block, blocks } = placeAt(bytes, entry);
    if (blocks < 1 || blocks > CHUNK_BLOCKS || block + blocks > BLOCKS_MAX) {
      throw lost(blobId, 'its index has a bad chunk');
    }
    if (entry > 0 && compareDigests(bytes, entry - 1, entry) >= 0) {
      throw lost(blobId, 'its index is not sorted');
    }
    end = Math.max(end, block + blocks);
  }
  return end;
}

function lost(blobId: Digest, problem: string): DsecError {
  return new DsecError('data-loss', `blob ${blobId}: ${problem}`);
}

function placeAt(bytes: Buffer, entry: number): ChunkPlace {
  const start = entry * INDEX_ENTRY_BYTES + DIGEST_BYTES;
  return { block: bytes.readUInt32LE(start), blocks: bytes.readUInt32LE(start + 4) };
}

function compareDigests(bytes: Buffer, a: number, b: number): number {
  const startA = a * INDEX_ENTRY_BYTES;
  const startB = b * INDEX_ENTRY_BYTES;
  return bytes.compare(bytes, startB, startB + DIGEST_BYTES, startA, startA + DIGEST_BYTES);
}
