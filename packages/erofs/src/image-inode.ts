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
import { bytesAt, damaged, type ErofsImage, uint64At } from './image.ts';
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
  const head = bytesAt(image.meta, offset, COMPACT_INODE_BYTES);
  const format = head.readUInt16LE(INODE.format);
  const extended = (format & FORMAT_EXTENDED) !== 0;
  const layout = format >> 1;
  if (layout !== LAYOUT_PLAIN && layout !== LAYOUT_INLINE && layout !== LAYOUT_CHUNKED) {
    throw damaged(`has an inode (nid ${nid}) of format ${format}, which is not supported`);
  }
  const modeBits = head.readUInt16LE(INODE.mode);
  const kind = kindOfMode(modeBits);
  if (kind === undefined) throw damaged(`has an inode (nid ${nid}) of no known type`);

  const count = head.readUInt16LE(INODE.xattrCount);
  const shared = {
    nid,
    kind,
    mode: modeBits & MODE_BITS,
    union: head.readUInt32LE(INODE.union),
    layout,
    offset,
    xattrBytes: count === 0 ? 0 : XATTR_HEADER_BYTES + (count - 1) * XATTR_ENTRY_BYTES,
  };
  const inode = extended ? readExtended(image, shared) : readCompact(image, shared, head);
  if ((kind === 'directory' || kind === 'symlink') && layout === LAYOUT_CHUNKED) {
    throw damaged(`has a ${kind} (nid ${nid}) in chunks`);
  }
  return inode;
}

type SharedPart = Pick<
  ImageInode,
  'nid' | 'kind' | 'mode' | 'union' | 'layout' | 'offset' | 'xattrBytes'
>;

function readExtended(image: ErofsImage, shared: SharedPart): ImageInode {
  const bytes = bytesAt(image.meta, shared.offset, INODE_BYTES);
  const mtimeSec = Number(bytes.readBigInt64LE(INODE.mtimeSec));
  const mtimeNsec = bytes.readUInt32LE(INODE.mtimeNsec);
  if (!Number.isSafeInteger(mtimeSec) || mtimeNsec > 999_999_999) {
    throw damaged(`has an inode (nid ${shared.nid}) with an impossible time`);
  }
  return {
    ...shared,
    uid: bytes.readUInt32LE(INODE.uid),
    gid: bytes.readUInt32LE(INODE.gid),
    mtimeSec,
    mtimeNsec,
    nlink: bytes.readUInt32LE(INODE.nlink),
    sizeBytes: uint64At(bytes, INODE.size),
    inodeBytes: INODE_BYTES,
  };
}

function readCompact(image: ErofsImage, shared: SharedPart, bytes: Buffer): ImageInode {
  return {
    ...shared,
    uid: bytes.readUInt16LE(COMPACT_INODE.uid),
    gid: bytes.readUInt16LE(COMPACT_INODE.gid),
    mtimeSec: image.superBlock.epochSec,
    mtimeNsec: image.superBlock.epochNsec,
    nlink: bytes.readUInt16LE(COMPACT_INODE.nlink),
    sizeBytes: bytes.readUInt32LE(COMPACT_INODE.size),
    inodeBytes: COMPACT_INODE_BYTES,
  };
}
