import { createHash } from 'node:crypto';
import { assert, digestOfHex } from '@dsec/std';
import type { BlobIndex } from './blob-index.ts';
import type { Build } from './build.ts';
import { type ChunkStore, HOLE } from './chunk-store.ts';
import { type ChunkTable, describeBlob, OWN_DEVICE } from './chunk-table.ts';
import { type ChunkMap, encodeImage, type LayerDevice } from './encode.ts';
import { chunksOf } from './format.ts';
import { type BuiltLayer, CHUNK_BYTES, type DedupSource, type LayerStats } from './model.ts';
import { type Inode, inodesInOrder } from './tree.ts';
import { hashTree } from './tree-digest.ts';

/** Turns a finished tree and its chunks into a layer: names the blob, encodes, hashes, counts. */
export function sealLayer(
  build: Build,
  sources: readonly DedupSource[],
  indexes: readonly BlobIndex[],
): BuiltLayer {
  const { chunks, root, limits, budget } = build;
  const { table, refs } = chunks;
  const blob = describeBlob(table);
  const devices: LayerDevice[] = [];
  const idOfDevice: number[] = [];
  if (blob !== undefined) {
    devices.push({ blobId: blob.blobId, blocks: blob.blocks });
    idOfDevice[OWN_DEVICE] = devices.length;
  }
  const used = usedSources(table);
  sources.forEach(({ blobId }, position) => {
    const index = indexes[position];
    assert(index !== undefined, 'every dedup source has its index open');
    if (!used.has(position + 1)) return;
    devices.push({ blobId, blocks: index.blocks });
    idOfDevice[position + 1] = devices.length;
  });

  const map: ChunkMap = {
    deviceId(position) {
      const chunk = refs.at(position);
      return chunk === HOLE ? 0 : (idOfDevice[table.device(chunk)] as number);
    },
    block: (position) => table.block(refs.at(position)),
  };
  const inodes = inodesInOrder(root);
  const meta = encodeImage(inodes, map, devices, limits.metaBytesMax);
  return {
    meta,
    layerId: digestOfHex(createHash('sha256').update(meta).digest('hex')),
    treeDigest: hashTree(root, {
      isHole: (position) => refs.at(position) === HOLE,
      digest: (position) => table.digest(refs.at(position)),
    }),
    blob,
    devices,
    stats: countLayer(inodes, chunks, budget.droppedXattrs),
  };
}

function usedSources(table: ChunkTable): Set<number> {
  const used = new Set<number>();
  for (let chunk = 0; chunk < table.count; chunk += 1) {
    if (table.uses(chunk) > 0) used.add(table.device(chunk));
  }
  return used;
}

function countLayer(
  inodes: readonly Inode[],
  { table, refs }: ChunkStore,
  droppedXattrs: number,
): LayerStats {
  let entries = 0;
  let contentBytes = 0;
  let holeBytes = 0;
  let ownDuplicateBytes = 0;
  let sharedBytes = 0;
  let storedBytes = 0;
  const stored = new Uint8Array(table.count);

  for (const inode of inodes) {
    entries += inode.names;
    if (inode.kind !== 'file') continue;
    contentBytes += inode.sizeBytes;
    const count = chunksOf(inode.sizeBytes);
    for (let index = 0; index < count; index += 1) {
      const bytes = Math.min(CHUNK_BYTES, inode.sizeBytes - index * CHUNK_BYTES);
      const chunk = refs.at(inode.chunkStart + index);
      if (chunk === HOLE) {
        holeBytes += bytes;
      } else if (table.device(chunk) !== OWN_DEVICE) {
        sharedBytes += bytes;
      } else if (stored[chunk] === 1) {
        ownDuplicateBytes += bytes;
      } else {
        stored[chunk] = 1;
        storedBytes += bytes;
      }
    }
  }
  return {
    entries: entries - 1,
    inodes: inodes.length,
    contentBytes,
    holeBytes,
    ownDuplicateBytes,
    sharedBytes,
    storedBytes,
    droppedXattrs,
  };
}
