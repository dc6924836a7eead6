import { createHash } from 'node:crypto';
import { type Digest, DsecError, hexOfDigest } from '@dsec/std';
import { crc32c } from './crc32c.ts';
import {
  BLOCK_BITS,
  BLOCKS_MAX,
  CHUNK_FORMAT,
  CHUNK_INDEX,
  CHUNK_INDEX_BYTES,
  COMPAT_CHECKSUM,
  COMPAT_MTIME,
  chunksOf,
  DEVICE_SLOT,
  DEVICE_SLOT_BYTES,
  DEVICE_TABLE_SLOT,
  DIRENT,
  DIRENT_BYTES,
  FORMAT_EXTENDED,
  INCOMPAT_CHUNKED_FILE,
  INCOMPAT_DEVICE_TABLE,
  INODE,
  INODE_BYTES,
  NID_BYTES,
  NULL_BLOCK,
  rowOf,
  SUPER,
  SUPER_MAGIC,
  SUPER_OFFSET,
  XATTR_ENTRY_BYTES,
  XATTR_HEADER_BYTES,
} from './format.ts';
import { directoryBlocks, type InodeShape, type Layout, planLayout, shapeOf } from './layout.ts';
import { BLOCK_BYTES } from './model.ts';
import type { DirectoryInode, FileInode, Inode } from './tree.ts';

export interface LayerDevice {
  readonly blobId: Digest;
  readonly blocks: number;
}

/** Where a tree's chunks lie. `position` counts from a file's `chunkStart`. */
export interface ChunkMap {
  /** From 1 by the order of the device table; 0 for a hole. */
  deviceId(position: number): number;
  block(position: number): number;
}

/**
 * Encodes a tree, given as `inodesInOrder` lists it, as an EROFS metadata image. The same tree, chunk map and
 * devices give the same bytes. Throws `import-limit` when the metadata or the sum of all blocks is too large.
 */
export function encodeImage(
  inodes: readonly Inode[],
  chunks: ChunkMap,
  devices: readonly LayerDevice[],
  metaBytesMax: number,
): Buffer {
  const layout = planLayout(inodes, devices.length, metaBytesMax);
  const image = Buffer.alloc(layout.blocks * BLOCK_BYTES);
  layout.xattrs.sharedArea.copy(image, layout.xattrBlock * BLOCK_BYTES);
  const metaOffset = layout.metaBlock * BLOCK_BYTES;
  layout.inodes.forEach((inode, index) => {
    const xattrs = layout.xattrs.encoded(inode.xattrs);
    const shape = shapeOf(inode, xattrs.length);
    const offset = metaOffset + inode.nid * NID_BYTES;
    writeInode(image, offset, inode, shape, index + 1, xattrs);
    writeContent(image, offset + shape.headBytes, inode, shape, chunks);
  });
  writeDevices(image, devices, layout.blocks);
  writeSuper(image, layout, devices.length);
  return image;
}

function writeInode(
  image: Buffer,
  offset: number,
  inode: Inode,
  shape: InodeShape,
  ino: number,
  xattrs: Buffer,
): void {
  image.writeUInt16LE(FORMAT_EXTENDED | (shape.layout << 1), offset + INODE.format);
  image.writeUInt16LE(xattrCount(xattrs.length), offset + INODE.xattrCount);
  image.writeUInt16LE(rowOf(inode.kind).typeBits | inode.mode, offset + INODE.mode);
  writeUInt64(image, sizeOf(inode), offset + INODE.size);
  image.writeUInt32LE(unionOf(inode, shape), offset + INODE.union);
  image.writeUInt32LE(ino, offset + INODE.ino);
  image.writeUInt32LE(inode.uid, offset + INODE.uid);
  image.writeUInt32LE(inode.gid, offset + INODE.gid);
  image.writeBigInt64LE(BigInt(inode.mtimeSec), offset + INODE.mtimeSec);
  image.writeUInt32LE(inode.mtimeNsec, offset + INODE.mtimeNsec);
  image.writeUInt32LE(linksOf(inode), offset + INODE.nlink);
  xattrs.copy(image, offset + INODE_BYTES);
}

/** The header counts as one, every further four bytes as one. */
function xattrCount(bytes: number): number {
  return bytes === 0 ? 0 : (bytes - XATTR_HEADER_BYTES) / XATTR_ENTRY_BYTES + 1;
}

function sizeOf(inode: Inode): number {
  if (inode.kind === 'symlink') return inode.target.length;
  return 'sizeBytes' in inode ? inode.sizeBytes : 0;
}

function unionOf(inode: Inode, shape: InodeShape): number {
  if (inode.kind === 'file') return CHUNK_FORMAT;
  if ('device' in inode) return inode.device;
  return shape.plainBlocks > 0 ? inode.dataBlock : 0;
}

/** A directory is named by its parent, by itself and by each directory in it. */
function linksOf(inode: Inode): number {
  if (inode.kind !== 'directory') return inode.names;
  let links = 2;
  for (const child of inode.children.values()) if (child.inode.kind === 'directory') links += 1;
  return links;
}

function writeContent(
  image: Buffer,
  offset: number,
  inode: Inode,
  shape: InodeShape,
  chunks: ChunkMap,
): void {
  if (inode.kind === 'file') writeChunkIndexes(image, offset, inode, chunks);
  if (inode.kind === 'symlink') {
    const start = shape.plainBlocks > 0 ? inode.dataBlock * BLOCK_BYTES : offset;
    image.write(inode.target, start, 'latin1');
  }
  if (inode.kind === 'directory') {
    directoryBlocks(inode.order).forEach((names, index) => {
      const start = index < shape.plainBlocks ? (inode.dataBlock + index) * BLOCK_BYTES : offset;
      writeDirectoryBlock(image, start, inode, names);
    });
  }
}

function writeChunkIndexes(image: Buffer, offset: number, file: FileInode, chunks: ChunkMap): void {
  const count = chunksOf(file.sizeBytes);
  for (let chunk = 0; chunk < count; chunk += 1) {
    const position = file.chunkStart + chunk;
    const deviceId = chunks.deviceId(position);
    const start = offset + chunk * CHUNK_INDEX_BYTES;
    image.writeUInt16LE(deviceId, start + CHUNK_INDEX.device);
    const block = deviceId === 0 ? NULL_BLOCK : chunks.block(position);
    image.writeUInt32LE(block, start + CHUNK_INDEX.block);
  }
}

/** Fixed-size entries first, then their names without separators. */
function writeDirectoryBlock(
  image: Buffer,
  start: number,
  directory: DirectoryInode,
  names: readonly string[],
): void {
  let nameOffset = names.length * DIRENT_BYTES;
  names.forEach((name, index) => {
    const entry = start + index * DIRENT_BYTES;
    const inode = inodeNamed(directory, name);
    image.writeUInt32LE(inode.nid, entry + DIRENT.nid);
    image.writeUInt16LE(nameOffset, entry + DIRENT.nameOffset);
    image[entry + DIRENT.fileType] = rowOf(inode.kind).direntType;
    image.write(name, start + nameOffset, 'latin1');
    nameOffset += name.length;
  });
}

function inodeNamed(directory: DirectoryInode, name: string): Inode {
  if (name === '.') return directory;
  if (name === '..') return directory.parent ?? directory;
  return directory.children.get(name)?.inode ?? directory;
}

/**
 * `mappedBlock` places the devices one after another behind the metadata, for a guest that sees them as one
 * disk.
 */
function writeDevices(image: Buffer, devices: readonly LayerDevice[], metaBlocks: number): void {
  let mappedBlock = metaBlocks;
  devices.forEach(({ blobId, blocks }, index) => {
    const slot = (DEVICE_TABLE_SLOT + index) * DEVICE_SLOT_BYTES;
    if (mappedBlock + blocks > BLOCKS_MAX) {
      throw new DsecError('import-limit', `metadata and blobs would pass ${BLOCKS_MAX} blocks`);
    }
    image.write(hexOfDigest(blobId), slot + DEVICE_SLOT.tag, 'latin1');
    image.writeUInt32LE(blocks, slot + DEVICE_SLOT.blocks);
    image.writeUInt32LE(mappedBlock, slot + DEVICE_SLOT.mappedBlock);
    mappedBlock += blocks;
  });
}

function writeSuper(image: Buffer, layout: Layout, deviceCount: number): void {
  const start = SUPER_OFFSET;
  image.writeUInt32LE(SUPER_MAGIC, start + SUPER.magic);
  image.writeUInt32LE(COMPAT_CHECKSUM | COMPAT_MTIME, start + SUPER.featureCompat);
  image[start + SUPER.blockBits] = BLOCK_BITS;
  image.writeUInt16LE(layout.inodes[0]?.nid ?? 0, start + SUPER.rootNid);
  writeUInt64(image, layout.inodes.length, start + SUPER.inodes);
  image.writeUInt32LE(layout.blocks, start + SUPER.blocks);
  image.writeUInt32LE(layout.metaBlock, start + SUPER.metaBlock);
  image.writeUInt32LE(layout.xattrBlock, start + SUPER.xattrBlock);
  image.writeUInt32LE(INCOMPAT_CHUNKED_FILE | INCOMPAT_DEVICE_TABLE, start + SUPER.featureIncompat);
  image.writeUInt16LE(deviceCount, start + SUPER.extraDevices);
  image.writeUInt16LE(DEVICE_TABLE_SLOT, start + SUPER.deviceTableSlot);
  // The uuid follows from everything else, and the checksum from everything in the first block.
  const uuid = createHash('sha256').update(image).digest().subarray(0, 16);
  uuid.copy(image, start + SUPER.uuid);
  image.writeUInt32LE(superChecksum(image), start + SUPER.checksum);
}

/** Covers the first block from the superblock on, with the checksum's own field taken as zero. */
export function superChecksum(image: Buffer): number {
  const covered = Buffer.from(image.subarray(SUPER_OFFSET, BLOCK_BYTES));
  covered.writeUInt32LE(0, SUPER.checksum);
  return crc32c(covered, 0xffff_ffff);
}

function writeUInt64(image: Buffer, value: number, offset: number): void {
  image.writeUInt32LE(value % 2 ** 32, offset);
  image.writeUInt32LE(Math.floor(value / 2 ** 32), offset + 4);
}
