import { DsecError } from '@dsec/std';
import {
  alignUp,
  blocksOf,
  CHUNK_INDEX_BYTES,
  chunksOf,
  DEVICE_SLOT_BYTES,
  DIRENT_BYTES,
  INODE_BYTES,
  LAYOUT_CHUNKED,
  LAYOUT_INLINE,
  LAYOUT_PLAIN,
  NID_BYTES,
  SUPER_BYTES,
  SUPER_OFFSET,
  XATTR_HEADER_BYTES,
} from './format.ts';
import { BLOCK_BYTES, type ByteString } from './model.ts';
import type { Inode } from './tree.ts';
import { encodeXattrs, type XattrEncoding } from './xattr-encoding.ts';

/** Metadata is built in one buffer and addressed with 32 signed bits. */
export const META_BYTES_MAX = 2 ** 31 - BLOCK_BYTES;

/**
 * Room behind an inode that the metadata always has: fsck.erofs before 1.9 reads a header of xattrs there
 * also when there are none, and calls an image damaged that ends sooner. Only the last inode can lack it.
 */
const BEHIND_INODE_BYTES = XATTR_HEADER_BYTES;
/** Not 0, since an inode number 0 is no file to many programs. */
const FIRST_NID = 1;

/**
 * Where everything goes. In the order of the image: superblock and devices, shared xattrs, inodes, plain
 * blocks.
 */
export interface Layout {
  /** The root first, so that its nid is small: the superblock has 16 bits for it. */
  readonly inodes: readonly Inode[];
  readonly xattrs: XattrEncoding;
  readonly xattrBlock: number;
  readonly metaBlock: number;
  readonly blocks: number;
}

/** Gives every inode (as `inodesInOrder` lists them) its place. Throws `import-limit` past `metaBytesMax`. */
export function planLayout(
  inodes: readonly Inode[],
  deviceCount: number,
  metaBytesMax: number,
): Layout {
  const xattrs = encodeXattrs(inodes);
  const xattrBlock = blocksOf(SUPER_OFFSET + SUPER_BYTES + deviceCount * DEVICE_SLOT_BYTES);
  const metaBlock = xattrBlock + blocksOf(xattrs.sharedArea.length);

  let offset = FIRST_NID * NID_BYTES;
  let endMin = 0;
  let plainBlocks = 0;
  for (const inode of inodes) {
    if (inode.kind === 'directory') inode.sizeBytes = directoryBytes(inode.order);
    const shape = shapeOf(inode, xattrs.encoded(inode.xattrs).length);
    offset = alignUp(offset, NID_BYTES);
    if (crossesBlock(offset + shape.headBytes, shape.inlineBytes)) {
      offset = alignUp(offset, BLOCK_BYTES);
    }
    inode.nid = offset / NID_BYTES;
    endMin = offset + INODE_BYTES + BEHIND_INODE_BYTES;
    offset += shape.headBytes + shape.inlineBytes + shape.chunkBytes;
    if (shape.plainBlocks > 0 && 'dataBlock' in inode) inode.dataBlock = plainBlocks;
    plainBlocks += shape.plainBlocks;
  }

  const firstPlainBlock = metaBlock + blocksOf(Math.max(offset, endMin));
  const blocks = firstPlainBlock + plainBlocks;
  if (blocks * BLOCK_BYTES > Math.min(metaBytesMax, META_BYTES_MAX)) {
    throw new DsecError('import-limit', `the layer's metadata would have ${blocks} blocks`, {
      details: { metaBytes: blocks * BLOCK_BYTES, metaBytesMax },
    });
  }
  for (const inode of inodes) {
    if ('dataBlock' in inode) inode.dataBlock += firstPlainBlock;
  }
  return { inodes, xattrs, xattrBlock, metaBlock, blocks };
}

/** How an inode and what belongs to it are arranged. */
export interface InodeShape {
  readonly layout: number;
  /** Inode and xattrs, and for files the gap before the chunk indexes. */
  readonly headBytes: number;
  readonly inlineBytes: number;
  readonly chunkBytes: number;
  readonly plainBlocks: number;
}

export function shapeOf(inode: Inode, xattrBytes: number): InodeShape {
  const headBytes = INODE_BYTES + xattrBytes;
  switch (inode.kind) {
    case 'file':
      return {
        layout: LAYOUT_CHUNKED,
        headBytes: alignUp(headBytes, CHUNK_INDEX_BYTES),
        inlineBytes: 0,
        chunkBytes: chunksOf(inode.sizeBytes) * CHUNK_INDEX_BYTES,
        plainBlocks: 0,
      };
    case 'directory':
      return dataShape(headBytes, inode.sizeBytes);
    case 'symlink':
      return dataShape(headBytes, inode.target.length);
    default:
      return dataShape(headBytes, 0);
  }
}

/** The part after the last whole block lies beside the inode when both fit into one block. */
function dataShape(headBytes: number, sizeBytes: number): InodeShape {
  const tailBytes = sizeBytes % BLOCK_BYTES;
  const inline = tailBytes > 0 && headBytes + tailBytes <= BLOCK_BYTES;
  return {
    layout: inline ? LAYOUT_INLINE : LAYOUT_PLAIN,
    headBytes,
    inlineBytes: inline ? tailBytes : 0,
    chunkBytes: 0,
    plainBlocks: inline ? Math.floor(sizeBytes / BLOCK_BYTES) : blocksOf(sizeBytes),
  };
}

function crossesBlock(start: number, length: number): boolean {
  return (start % BLOCK_BYTES) + length > BLOCK_BYTES && length > 0;
}

/**
 * Splits a directory's names, `.` and `..` among them, into blocks: as many as fit into each, in byte order.
 */
export function directoryBlocks(order: readonly ByteString[]): ByteString[][] {
  const blocks: ByteString[][] = [];
  let current: ByteString[] = [];
  let used = 0;
  for (const name of withDots(order)) {
    const bytes = DIRENT_BYTES + name.length;
    if (used + bytes > BLOCK_BYTES) {
      blocks.push(current);
      current = [];
      used = 0;
    }
    current.push(name);
    used += bytes;
  }
  blocks.push(current);
  return blocks;
}

function directoryBytes(order: readonly ByteString[]): number {
  const blocks = directoryBlocks(order);
  const last = blocks.at(-1) ?? [];
  const lastBytes = last.reduce((sum, name) => sum + DIRENT_BYTES + name.length, 0);
  return (blocks.length - 1) * BLOCK_BYTES + lastBytes;
}

function withDots(order: readonly ByteString[]): ByteString[] {
  const names = [...order];
  for (const dots of ['.', '..']) {
    const place = names.findIndex((name) => name > dots);
    names.splice(place < 0 ? names.length : place, 0, dots);
  }
  return names;
}
