import {
  COMPACT_INODE,
  COMPACT_INODE_BYTES,
  type FileKind,
  FORMAT_EXTENDED,
  INODE,
  INODE_BYTES,
  kindOfMode,
  LAYOUT_CHUNKED,
  LAYOUT_INLINE,
  LAYOUT_PLAIN,
  MODE_BITS,
  NID_BYTES,
  XATTR_ENTRY_BYTES,
  XATTR_HEADER_BYTES,
} from './format.ts';
import { bytesAt, damaged, type ErofsImage, type SuperBlock, uint64At } from './image.ts';
import { BLOCK_BYTES } from './model.ts';

export interface ImageInode {
  readonly nid: number;
  readonly kind: FileKind;
  /** Permission, setuid, setgid and sticky bits. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly mtimeSec: number;
  readonly mtimeNsec: number;
  readonly nlink: number;
  readonly sizeBytes: number;
  /** Encoded device number of a device, start block or chunk format of others. */
  readonly union: number;
  readonly layout: number;
  /** Where the inode itself begins in the metadata, its length, and the length of the xattrs behind it. */
  readonly offset: number;
  readonly inodeBytes: number;
  readonly xattrBytes: number;
}

export function inodeOffset(image: ErofsImage, nid: number): number {
  return image.superBlock.metaBlock * BLOCK_BYTES + nid * NID_BYTES;
}

/** Reads the inode of a nid from a directory entry or of the root. */
export function readInode(image: ErofsImage, nid: number): ImageInode {
  const offset = inodeOffset(image, nid);
  const bytes = bytesAt(image.meta, offset, COMPACT_INODE_BYTES);
  const format = bytes.readUInt16LE(INODE.format);
  const layout = format >> 1;
  if (layout !== LAYOUT_PLAIN && layout !== LAYOUT_INLINE && layout !== LAYOUT_CHUNKED) {
    throw damaged(`has an inode (nid ${nid}) of format ${format}, which is not supported`);
  }
  const kind = kindOfMode(bytes.readUInt16LE(INODE.mode));
  if (kind === undefined) throw damaged(`has an inode (nid ${nid}) of no known type`);
  if ((kind === 'directory' || kind === 'symlink') && layout === LAYOUT_CHUNKED) {
    throw damaged(`has a ${kind} (nid ${nid}) in chunks`);
  }
  return (format & FORMAT_EXTENDED) !== 0
    ? readExtended(nid, kind, layout, offset, bytesAt(image.meta, offset, INODE_BYTES))
    : readCompact(nid, kind, layout, offset, bytes, image.superBlock);
}

function readExtended(
  nid: number,
  kind: FileKind,
  layout: number,
  offset: number,
  bytes: Buffer,
): ImageInode {
  const mtimeSec = int64At(bytes, INODE.mtimeSec);
  const mtimeNsec = bytes.readUInt32LE(INODE.mtimeNsec);
  if (!Number.isSafeInteger(mtimeSec) || mtimeNsec > 999_999_999) {
    throw damaged(`has an inode (nid ${nid}) with an impossible time`);
  }
  return {
    nid,
    kind,
    mode: bytes.readUInt16LE(INODE.mode) & MODE_BITS,
    uid: bytes.readUInt32LE(INODE.uid),
    gid: bytes.readUInt32LE(INODE.gid),
    mtimeSec,
    mtimeNsec,
    nlink: bytes.readUInt32LE(INODE.nlink),
    sizeBytes: uint64At(bytes, INODE.size),
    union: bytes.readUInt32LE(INODE.union),
    layout,
    offset,
    inodeBytes: INODE_BYTES,
    xattrBytes: xattrBytesOf(bytes),
  };
}

function readCompact(
  nid: number,
  kind: FileKind,
  layout: number,
  offset: number,
  bytes: Buffer,
  superBlock: SuperBlock,
): ImageInode {
  return {
    nid,
    kind,
    mode: bytes.readUInt16LE(INODE.mode) & MODE_BITS,
    uid: bytes.readUInt16LE(COMPACT_INODE.uid),
    gid: bytes.readUInt16LE(COMPACT_INODE.gid),
    mtimeSec: superBlock.epochSec,
    mtimeNsec: superBlock.epochNsec,
    nlink: bytes.readUInt16LE(COMPACT_INODE.nlink),
    sizeBytes: bytes.readUInt32LE(COMPACT_INODE.size),
    union: bytes.readUInt32LE(INODE.union),
    layout,
    offset,
    inodeBytes: COMPACT_INODE_BYTES,
    xattrBytes: xattrBytesOf(bytes),
  };
}

function xattrBytesOf(bytes: Buffer): number {
  const count = bytes.readUInt16LE(INODE.xattrCount);
  return count === 0 ? 0 : XATTR_HEADER_BYTES + (count - 1) * XATTR_ENTRY_BYTES;
}

function int64At(bytes: Buffer, offset: number): number {
  return bytes.readInt32LE(offset + 4) * 2 ** 32 + bytes.readUInt32LE(offset);
}
