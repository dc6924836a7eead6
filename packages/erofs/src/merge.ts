import { createHash } from 'node:crypto';
import { type Digest, DsecError, digestOfHex } from '@dsec/std';
import { type ChunkList, createChunkList } from './chunk-list.ts';
import { encodeImage, type LayerDevice } from './encode.ts';
import { chunksOf } from './format.ts';
import { DEVICES_MAX } from './image.ts';
import { loadTree } from './load.ts';
import {
  type DirectoryInode,
  type Inode,
  inodesInOrder,
  isOpaque,
  isWhiteout,
  setHead,
} from './tree.ts';
import { createTreeEditor, type TreeEditor } from './tree-edit.ts';
import type { ValidLayer } from './validate.ts';
import { createXattrPool, type XattrPool } from './xattr-pool.ts';

export interface MergeOptions {
  /** The result is a whole tree: whiteouts and opaque marks have done their work and are left out. */
  readonly stripWhiteouts: boolean;
  readonly metaBytesMax: number;
}

export interface MergedLayer {
  readonly meta: Uint8Array;
  /** sha256 of `meta`. */
  readonly layerId: Digest;
  /** The blobs that the result still refers to, in device-table order. */
  readonly devices: readonly LayerDevice[];
}

/**
 * Makes one metadata image of a stack of layers, bottom first, without touching data. It shows what overlayfs
 * shows of the same stack (with `redirect_dir=nofollow,metacopy=off`); only the link count of an inode whose
 * other names are hidden differs, which overlayfs takes from the layer below. Without `stripWhiteouts` the
 * result is itself a diff that hides in lower layers what the stack hid. Throws `import-limit` when the
 * result would have too many devices or be too large.
 */
export function mergeLayers(layers: readonly ValidLayer[], options: MergeOptions): MergedLayer {
  const blobs = unionOfDevices(layers);
  const pool = createXattrPool();
  const chunks = createChunkList();
  const editor = createTreeEditor(() => {});
  let merged: DirectoryInode | undefined;
  for (const layer of layers) {
    const numbers = layer.devices.map(({ blobId }) => blobs.findIndex((b) => b.blobId === blobId));
    const context = { pool, chunks, deviceId: (id: number) => (numbers[id - 1] ?? -1) + 1 };
    const upper = loadTree(layer, context);
    if (merged === undefined) merged = upper;
    else overlay(merged, upper, editor, pool);
  }
  if (merged === undefined) throw new DsecError('invalid-argument', 'nothing to merge');
  if (options.stripWhiteouts) strip(merged, editor, pool);

  const inodes = inodesInOrder(merged);
  const { devices, idOf } = usedDevices(inodes, chunks, blobs);
  const map = {
    deviceId: (position: number) => idOf[chunks.deviceId(position)] ?? 0,
    block: (position: number) => chunks.block(position),
  };
  const meta = encodeImage(inodes, map, devices, options.metaBytesMax);
  return { meta, layerId: digestOfHex(createHash('sha256').update(meta).digest('hex')), devices };
}

function unionOfDevices(layers: readonly ValidLayer[]): LayerDevice[] {
  const union = new Map<Digest, LayerDevice>();
  for (const { devices } of layers) {
    for (const device of devices) {
      const blocks = Math.max(device.blocks, union.get(device.blobId)?.blocks ?? 0);
      union.set(device.blobId, { blobId: device.blobId, blocks });
    }
  }
  return [...union.values()];
}

/** Puts `upper` over `lower`, which becomes the result. Iterative, as a tree may be deeper than the stack. */
function overlay(
  lower: DirectoryInode,
  upper: DirectoryInode,
  editor: TreeEditor,
  pool: XattrPool,
): void {
  const pairs = [{ lower, upper }];
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const { lower: below, upper: above } = pair;
    if (isOpaque(above)) {
      for (const name of [...below.children.keys()]) editor.unlink(below, name);
    }
    const hides = isOpaque(above) || isOpaque(below);
    setHead(below, above);
    if (hides) below.xattrs = pool.withOpaque(above.xattrs);
    for (const [name, entry] of above.children) {
      const covered = below.children.get(name)?.inode;
      if (entry.inode.kind === 'directory' && covered?.kind === 'directory') {
        pairs.push({ lower: covered, upper: entry.inode });
        continue;
      }
      // Lookups of overlayfs end at a non-directory, so what is below it stays hidden.
      if (entry.inode.kind === 'directory' && covered !== undefined) {
        entry.inode.xattrs = pool.withOpaque(entry.inode.xattrs);
      }
      editor.unlink(below, name);
      below.children.set(name, entry);
    }
  }
}

function strip(root: DirectoryInode, editor: TreeEditor, pool: XattrPool): void {
  const directories = [root];
  for (let next = directories.pop(); next !== undefined; next = directories.pop()) {
    next.xattrs = pool.withoutOpaque(next.xattrs);
    for (const [name, { inode }] of next.children) {
      if (isWhiteout(inode)) editor.unlink(next, name);
      else if (inode.kind === 'directory') directories.push(inode);
    }
  }
}

/** Leaves out the blobs of which nothing is visible any more. */
function usedDevices(
  inodes: readonly Inode[],
  chunks: ChunkList,
  blobs: readonly LayerDevice[],
): { devices: LayerDevice[]; idOf: number[] } {
  const used = new Set<number>();
  for (const inode of inodes) {
    if (inode.kind !== 'file') continue;
    const end = inode.chunkStart + chunksOf(inode.sizeBytes);
    for (let position = inode.chunkStart; position < end; position += 1) {
      used.add(chunks.deviceId(position));
    }
  }
  const devices: LayerDevice[] = [];
  const idOf: number[] = [0];
  blobs.forEach((blob, index) => {
    if (used.has(index + 1)) idOf[index + 1] = devices.push(blob);
  });
  if (devices.length > DEVICES_MAX) {
    throw new DsecError('import-limit', `the merged layer would need ${devices.length} blobs`, {
      details: { limit: 'DEVICES_MAX', value: DEVICES_MAX },
    });
  }
  return { devices, idOf };
}
