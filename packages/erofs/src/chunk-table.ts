import { createHash } from 'node:crypto';
import { DsecError, digestOfHex } from '@dsec/std';
import { DIGEST_BYTES, INDEX_ENTRY_BYTES } from './blob-index.ts';
import type { BuiltBlob } from './model.ts';

/** Device 0 is the blob that is being written; device n is the n-th dedup source. */
export const OWN_DEVICE = 0;
const CHUNKS_MAX = 2 ** 26;
/** What a chunk takes: its columns, twice while they grow, and its row of the index. */
export const CHUNK_MEMORY_BYTES = 160;
const NONE = -1;

/** Every distinct chunk that the tree has named, in columns: millions of them must stay cheap. */
export interface ChunkTable {
  readonly count: number;
  /** The chunk with this digest (32 characters of one byte each), or -1. */
  find(digest: string): number;
  add(digest: string, device: number, block: number, blocks: number): number;
  /** Gives a chunk whose blocks were discarded a new place. */
  place(chunk: number, block: number, blocks: number): void;
  device(chunk: number): number;
  block(chunk: number): number;
  /** 0 once discarded. */
  blocks(chunk: number): number;
  uses(chunk: number): number;
  addUses(chunk: number, change: number): void;
  /** A view into the table, valid until the next `add`. */
  digest(chunk: number): Buffer;
}

export function createChunkTable(): ChunkTable {
  let capacity = 1024;
  let count = 0;
  let digests = Buffer.alloc(capacity * DIGEST_BYTES);
  let devices = new Uint8Array(capacity);
  let blockCounts = new Uint8Array(capacity);
  let firstBlocks = new Uint32Array(capacity);
  let useCounts = new Uint32Array(capacity);
  /** Open addressing, at most half full; holds chunk + 1. */
  let buckets = new Uint32Array(capacity * 2);

  const enlarge = () => {
    if (capacity >= CHUNKS_MAX) {
      throw new DsecError('import-limit', `a layer may hold at most ${CHUNKS_MAX} distinct chunks`);
    }
    capacity *= 2;
    digests = Buffer.concat([digests], capacity * DIGEST_BYTES);
    devices = enlarged(devices, new Uint8Array(capacity));
    blockCounts = enlarged(blockCounts, new Uint8Array(capacity));
    firstBlocks = enlarged(firstBlocks, new Uint32Array(capacity));
    useCounts = enlarged(useCounts, new Uint32Array(capacity));
    buckets = new Uint32Array(capacity * 2);
    for (let chunk = 0; chunk < count; chunk += 1) {
      let bucket = digests.readUInt32LE(chunk * DIGEST_BYTES) & (buckets.length - 1);
      while (buckets[bucket] !== 0) bucket = (bucket + 1) & (buckets.length - 1);
      buckets[bucket] = chunk + 1;
    }
  };

  const bucketOf = (digest: string) => {
    const mask = buckets.length - 1;
    let bucket = digestStart(digest) & mask;
    for (;;) {
      const chunk = (buckets[bucket] as number) - 1;
      if (chunk === NONE || digestEquals(digests, chunk * DIGEST_BYTES, digest)) return bucket;
      bucket = (bucket + 1) & mask;
    }
  };

  return {
    get count() {
      return count;
    },
    find: (digest) => (buckets[bucketOf(digest)] as number) - 1,
    add(digest, device, block, blocks) {
      if (count === capacity) enlarge();
      const chunk = count;
      count += 1;
      buckets[bucketOf(digest)] = chunk + 1;
      digests.write(digest, chunk * DIGEST_BYTES, DIGEST_BYTES, 'latin1');
      devices[chunk] = device;
      firstBlocks[chunk] = block;
      blockCounts[chunk] = blocks;
      return chunk;
    },
    place(chunk, block, blocks) {
      firstBlocks[chunk] = block;
      blockCounts[chunk] = blocks;
    },
    device: (chunk) => devices[chunk] as number,
    block: (chunk) => firstBlocks[chunk] as number,
    blocks: (chunk) => blockCounts[chunk] as number,
    uses: (chunk) => useCounts[chunk] as number,
    addUses(chunk, change) {
      useCounts[chunk] = (useCounts[chunk] as number) + change;
    },
    digest: (chunk) => digests.subarray(chunk * DIGEST_BYTES, (chunk + 1) * DIGEST_BYTES),
  };
}

/** The name and index of the blob that holds the table's live own chunks; undefined when there are none. */
export function describeBlob(table: ChunkTable): BuiltBlob | undefined {
  const live = new Uint32Array(table.count);
  const keys = new Float64Array(table.count);
  let count = 0;
  let blocks = 0;
  for (let chunk = 0; chunk < table.count; chunk += 1) {
    if (table.device(chunk) !== OWN_DEVICE || table.uses(chunk) === 0) continue;
    keys[chunk] = table.digest(chunk).readUIntBE(0, 6);
    live[count] = chunk;
    count += 1;
    blocks = Math.max(blocks, table.block(chunk) + table.blocks(chunk));
  }
  if (count === 0) return undefined;
  const sorted = live.subarray(0, count).sort((a, b) => {
    const apart = (keys[a] as number) - (keys[b] as number);
    return apart || Buffer.compare(table.digest(a), table.digest(b));
  });

  const index = Buffer.alloc(count * INDEX_ENTRY_BYTES);
  sorted.forEach((chunk, position) => {
    const start = position * INDEX_ENTRY_BYTES;
    table.digest(chunk).copy(index, start);
    index.writeUInt32LE(table.block(chunk), start + DIGEST_BYTES);
    index.writeUInt32LE(table.blocks(chunk), start + DIGEST_BYTES + 4);
  });
  const blobId = digestOfHex(createHash('sha256').update(index).digest('hex'));
  return { blobId, blocks, index };
}

function enlarged<T extends Uint8Array | Uint32Array>(from: T, into: T): T {
  into.set(from);
  return into;
}

function digestStart(digest: string): number {
  return (
    digest.charCodeAt(0) |
    (digest.charCodeAt(1) << 8) |
    (digest.charCodeAt(2) << 16) |
    (digest.charCodeAt(3) << 24)
  );
}

function digestEquals(digests: Buffer, start: number, digest: string): boolean {
  for (let byte = 0; byte < DIGEST_BYTES; byte += 1) {
    if (digests[start + byte] !== digest.charCodeAt(byte)) return false;
  }
  return true;
}
