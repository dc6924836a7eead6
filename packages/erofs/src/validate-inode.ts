import { assertZero } from './claims.ts';
import {
  alignUp,
  blocksOf,
  CHUNK_BLOCKS,
  CHUNK_FORMAT,
  CHUNK_INDEX,
  CHUNK_INDEX_BYTES,
  chunksOf,
  DIRENT,
  DIRENT_BYTES,
  INODE,
  INODE_BYTES,
  LAYOUT_CHUNKED,
  LAYOUT_INLINE,
  LAYOUT_PLAIN,
  NULL_BLOCK,
} from './format.ts';
import { damaged } from './image.ts';
import { readLink, tailOffset } from './image-content.ts';
import { type ImageEntry, readDirectoryBlocks } from './image-directory.ts';
import type { ImageInode } from './image-inode.ts';
import { BLOCK_BYTES, ID_MAX } from './model.ts';
import { validateXattrs } from './validate-xattrs.ts';
import type { Validation } from './validation.ts';

/**
 * Checks an inode and all that belongs to it except a directory's entries. `ino` is the number it must carry.
 */
export function validateInode(v: Validation, inode: ImageInode, ino: number): void {
  const { offset, nid } = inode;
  if (inode.inodeBytes !== INODE_BYTES) throw damaged(`has a short inode (nid ${nid})`);
  claimInode(v, inode);
  if (v.bytes.readUInt32LE(offset + INODE.ino) !== ino) {
    throw damaged(`has an inode (nid ${nid}) with a wrong number`);
  }
  assertZero(v.bytes, offset + INODE.reserved, offset + INODE.size);
  assertZero(v.bytes, offset + INODE.reserved2, offset + INODE_BYTES);
  if (inode.uid > ID_MAX || inode.gid > ID_MAX) throw damaged(`has an id above ${ID_MAX}`);
  validateXattrs(v, inode);

  if (inode.kind === 'file') validateChunks(v, inode);
  else if (inode.kind === 'symlink') readLink(v.image, inode);
  else if (inode.kind !== 'directory') validateSpecial(inode);
}

/** Claims the inode, its xattrs, its inline data or chunk indexes, and its plain blocks. */
function claimInode(v: Validation, inode: ImageInode): void {
  const { kind, layout, union, sizeBytes, offset, nid } = inode;
  const tail = tailOffset(inode);
  if (kind === 'file') {
    if (layout !== LAYOUT_CHUNKED || union !== CHUNK_FORMAT) {
      throw damaged(`has a file (nid ${nid}) that is not in indexed chunks of 64 KiB`);
    }
    const tableStart = alignUp(tail, CHUNK_INDEX_BYTES);
    v.claims.claim(offset, tableStart + chunksOf(sizeBytes) * CHUNK_INDEX_BYTES);
    assertZero(v.bytes, tail, tableStart);
    return;
  }
  const inlineBytes = layout === LAYOUT_INLINE ? sizeBytes % BLOCK_BYTES : 0;
  v.claims.claim(offset, tail + inlineBytes);
  const plainBytes = sizeBytes - inlineBytes;
  if (plainBytes > 0) {
    const start = union * BLOCK_BYTES;
    const end = start + blocksOf(plainBytes) * BLOCK_BYTES;
    v.claims.claim(start, end);
    assertZero(v.bytes, start + plainBytes, end);
  } else if (kind === 'directory' || kind === 'symlink') {
    if (union !== 0) throw damaged(`has an inode (nid ${nid}) with a block and no content there`);
  }
}

function validateSpecial({ kind, layout, sizeBytes, union, nid, ...inode }: ImageInode): void {
  if (layout !== LAYOUT_PLAIN || sizeBytes !== 0) throw damaged(`has content in a ${kind}`);
  const isDevice = kind === 'char' || kind === 'block';
  if (!isDevice && union !== 0) throw damaged(`has a ${kind} (nid ${nid}) with a device number`);
  if (kind !== 'char' || union !== 0) return;
  const { mode, uid, gid, mtimeSec, mtimeNsec, xattrBytes, nlink } = inode;
  const plain = mode === 0 && uid === 0 && gid === 0 && mtimeSec === 0 && mtimeNsec === 0;
  if (!plain || xattrBytes !== 0 || nlink !== 1) throw damaged(`has a whiteout with attributes`);
}

function validateChunks(v: Validation, inode: ImageInode): void {
  const { sizeBytes, nid } = inode;
  v.contentBytes += sizeBytes;
  if (sizeBytes > v.limits.fileBytesMax || v.contentBytes > v.limits.contentBytesMax) {
    throw damaged('has more content than the limit');
  }
  const table = alignUp(tailOffset(inode), CHUNK_INDEX_BYTES);
  const count = chunksOf(sizeBytes);
  const lastBlocks = blocksOf(sizeBytes) - (count - 1) * CHUNK_BLOCKS;
  for (let chunk = 0; chunk < count; chunk += 1) {
    const at = table + chunk * CHUNK_INDEX_BYTES;
    const deviceId = v.bytes.readUInt16LE(at + CHUNK_INDEX.device);
    const block = v.bytes.readUInt32LE(at + CHUNK_INDEX.block);
    if (v.bytes.readUInt16LE(at + CHUNK_INDEX.advise) !== 0) throw damaged('has a marked chunk');
    if (deviceId === 0 && block === NULL_BLOCK) continue;
    const device = v.devices[deviceId - 1];
    const blocks = chunk === count - 1 ? lastBlocks : CHUNK_BLOCKS;
    if (device === undefined || block + blocks > device.blocks) {
      throw damaged(`has a chunk (nid ${nid}) at block ${block} of device ${deviceId}`);
    }
    v.usedDevices.add(deviceId);
  }
}

/** The entries of a directory whose content has been claimed; every block packed, its rest zero. */
export function* validateEntries(v: Validation, inode: ImageInode): Generator<ImageEntry> {
  for (const { block, entries } of readDirectoryBlocks(v.image, inode)) {
    let used = 0;
    entries.forEach(({ name }, index) => {
      used += DIRENT_BYTES + name.length;
      if (block[index * DIRENT_BYTES + DIRENT.reserved] !== 0) throw damaged('has a marked entry');
    });
    assertZero(block, used, block.length);
    yield* entries;
  }
}
