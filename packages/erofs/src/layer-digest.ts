import { createHash } from 'node:crypto';
import { type Digest, DsecError } from '@dsec/std';
import { type BlobIndex, positionsByBlock } from './blob-index.ts';
import { type ChunkList, createChunkList } from './chunk-list.ts';
import { type ByteSource, bytesAt, damaged } from './image.ts';
import { loadTree } from './load.ts';
import { BLOCK_BYTES } from './model.ts';
import { inodesInOrder } from './tree.ts';
import { hashTree } from './tree-digest.ts';
import type { ValidLayer } from './validate.ts';
import { createXattrPool } from './xattr-pool.ts';

type DigestOf = (deviceId: number, block: number, blocks: number) => Uint8Array;

/** The digest of a layer's tree by reading all of its data. `devices` are its blobs in device-table order. */
export function treeDigestOfData(layer: ValidLayer, devices: readonly ByteSource[]): Digest {
  return digestTree(layer, (deviceId, block, blocks) => {
    const source = devices[deviceId - 1];
    if (source === undefined) throw damaged(`needs device ${deviceId}`);
    const bytes = bytesAt(source, block * BLOCK_BYTES, blocks * BLOCK_BYTES);
    return createHash('sha256').update(bytes).digest();
  });
}

/**
 * The same without reading data, from what the indexes of the layer's blobs say, in device-table order.
 * Throws `data-loss` when a chunk of the layer is none of its blob.
 */
export function treeDigestOfIndexes(layer: ValidLayer, indexes: readonly BlobIndex[]): Digest {
  const byBlock = indexes.map(chunksByBlock);
  return digestTree(layer, (deviceId, block, blocks) => {
    const digest = byBlock[deviceId - 1]?.(block, blocks);
    if (digest !== undefined) return digest;
    throw new DsecError('data-loss', `no chunk at block ${block} of device ${deviceId}`);
  });
}

function digestTree(layer: ValidLayer, digestOf: DigestOf): Digest {
  const chunks: ChunkList = createChunkList();
  const pool = createXattrPool();
  const root = loadTree(layer, { pool, chunks, deviceId: (id) => id });
  inodesInOrder(root);
  return hashTree(root, {
    isHole: (position) => chunks.deviceId(position) === 0,
    digest: (position, blocks) =>
      digestOf(chunks.deviceId(position), chunks.block(position), blocks),
  });
}

function chunksByBlock(index: BlobIndex): (block: number, blocks: number) => Buffer | undefined {
  const order = positionsByBlock(index);
  return (block, blocks) => {
    let low = 0;
    let high = order.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (index.chunk(order[middle] as number).block < block) low = middle + 1;
      else high = middle;
    }
    const position = order[low];
    if (position === undefined) return undefined;
    const chunk = index.chunk(position);
    return chunk.block === block && chunk.blocks === blocks ? chunk.digest : undefined;
  };
}
