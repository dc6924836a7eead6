/**
 * The EROFS on-disk format as far as DSec uses it: uncompressed images of 4 KiB blocks. Offsets are in bytes
 * from the start of their structure, every number is little-endian. Source: the kernel's fs/erofs/erofs_fs.h.
 */
import { BLOCK_BYTES, CHUNK_BYTES } from './model.ts';

export const BLOCK_BITS = 12;
export const CHUNK_BLOCKS = CHUNK_BYTES / BLOCK_BYTES;

export const SUPER_OFFSET = 1024;
export const SUPER_BYTES = 128;
export const SUPER_MAGIC = 0xe0f5e1e2;

export const SUPER = {
  magic: 0,
  checksum: 4,
  featureCompat: 8,
  blockBits: 12,
  extensionSlots: 13,
  rootNid: 14,
  inodes: 16,
  epoch: 24,
  epochNsec: 32,
  blocks: 36,
  metaBlock: 40,
  xattrBlock: 44,
  uuid: 48,
  volumeName: 64,
  featureIncompat: 80,
  compressionAlgorithms: 84,
  extraDevices: 86,
  deviceTableSlot: 88,
  directoryBlockBits: 90,
  xattrPrefixCount: 91,
  /** From here to the end: packed inode, xattr filter, later extensions. All zero in our images. */
  rest: 92,
} as const;

export const COMPAT_CHECKSUM = 1;
/** `i_mtime` holds the modification time. */
export const COMPAT_MTIME = 2;
export const INCOMPAT_CHUNKED_FILE = 4;
export const INCOMPAT_DEVICE_TABLE = 8;

export const DEVICE_SLOT_BYTES = 128;
export const DEVICE_TAG_BYTES = 64;
export const DEVICE_SLOT = { tag: 0, blocks: 64, mappedBlock: 68, rest: 72 } as const;
/** The device table follows the superblock; its position is counted in slots. */
export const DEVICE_TABLE_SLOT = (SUPER_OFFSET + SUPER_BYTES) / DEVICE_SLOT_BYTES;

/** Inodes are addressed by nid: their distance from the metadata block in units of 32 bytes. */
export const NID_BYTES = 32;

export const INODE_BYTES = 64;
export const COMPACT_INODE_BYTES = 32;
export const INODE = {
  format: 0,
  xattrCount: 2,
  mode: 4,
  reserved: 6,
  size: 8,
  /** Start block, device number or chunk format, by layout and kind. */
  union: 16,
  ino: 20,
  uid: 24,
  gid: 28,
  mtimeSec: 32,
  mtimeNsec: 40,
  nlink: 44,
  reserved2: 48,
} as const;
export const COMPACT_INODE = {
  nlink: 6,
  size: 8,
  reserved: 12,
  union: 16,
  uid: 24,
  gid: 26,
} as const;

/** Lowest bit of `format`: extended (64 bytes); the next three bits are the data layout. */
export const FORMAT_EXTENDED = 1;
export const LAYOUT_PLAIN = 0;
export const LAYOUT_INLINE = 2;
export const LAYOUT_CHUNKED = 4;

/** Chunk format: the low five bits hold log2(chunk / block). */
export const CHUNK_FORMAT_BITS = 0x1f;
export const CHUNK_FORMAT_INDEXES = 0x20;
/** What our writer gives: 64 KiB chunks with 8-byte indexes. */
export const CHUNK_FORMAT = CHUNK_FORMAT_INDEXES | Math.log2(CHUNK_BLOCKS);
export const CHUNK_INDEX_BYTES = 8;
export const CHUNK_INDEX = { advise: 0, device: 2, block: 4 } as const;
/** Block address of a hole. */
export const NULL_BLOCK = 0xffff_ffff;
/** A block address is 32 bits wide and the highest one means a hole. */
export const BLOCKS_MAX = 0xffff_ffff;

export const DIRENT_BYTES = 12;
export const DIRENT = { nid: 0, nameOffset: 8, fileType: 10, reserved: 11 } as const;
export const NAME_BYTES_MAX = 255;
/** A link target of PATH_MAX bytes without its final NUL. */
export const SYMLINK_BYTES_MAX = 4095;

export const XATTR_HEADER_BYTES = 12;
export const XATTR_HEADER = { filter: 0, sharedCount: 4, reserved: 5 } as const;
export const XATTR_ENTRY_BYTES = 4;
export const XATTR_ENTRY = { nameBytes: 0, prefix: 1, valueBytes: 2 } as const;
export const XATTR_SHARED_MAX = 255;
/** The count in the inode: the header is one, each further four bytes one. */
export const XATTR_COUNT_MAX = 0xffff;
export const XATTR_VALUE_BYTES_MAX = 0xffff;

/** Name prefixes by their number on disk, in the order in which they are tried. */
export const XATTR_PREFIXES: readonly (readonly [prefix: string, index: number])[] = [
  ['user.', 1],
  ['system.posix_acl_access', 2],
  ['system.posix_acl_default', 3],
  ['trusted.', 4],
  ['security.', 6],
];

const S_IFMT = 0o170000;
export const MODE_BITS = 0o7777;
const S_IFDIR = 0o040000;
const S_IFREG = 0o100000;
const S_IFLNK = 0o120000;
const S_IFCHR = 0o020000;
const S_IFBLK = 0o060000;
const S_IFIFO = 0o010000;
const S_IFSOCK = 0o140000;

export type FileKind = 'file' | 'directory' | 'char' | 'block' | 'fifo' | 'socket' | 'symlink';

export interface KindRow {
  readonly kind: FileKind;
  readonly typeBits: number;
  /** `file_type` in a directory entry. */
  readonly direntType: number;
}

export const KIND_ROWS: readonly KindRow[] = [
  { kind: 'file', typeBits: S_IFREG, direntType: 1 },
  { kind: 'directory', typeBits: S_IFDIR, direntType: 2 },
  { kind: 'char', typeBits: S_IFCHR, direntType: 3 },
  { kind: 'block', typeBits: S_IFBLK, direntType: 4 },
  { kind: 'fifo', typeBits: S_IFIFO, direntType: 5 },
  { kind: 'socket', typeBits: S_IFSOCK, direntType: 6 },
  { kind: 'symlink', typeBits: S_IFLNK, direntType: 7 },
];

const rowOfKind = new Map(KIND_ROWS.map((row) => [row.kind, row]));
const kindOfTypeBits = new Map(KIND_ROWS.map((row) => [row.typeBits, row.kind]));

export function rowOf(kind: FileKind): KindRow {
  return rowOfKind.get(kind) as KindRow;
}

/** The kind that the upper bits of a mode name, or undefined for bits that name none. */
export function kindOfMode(mode: number): FileKind | undefined {
  return kindOfTypeBits.get(mode & S_IFMT);
}

/** Device numbers have 12 bits of major and 20 bits of minor (the kernel's `new_encode_dev`). */
export const MAJOR_MAX = 0xfff;
export const MINOR_MAX = 0xfffff;

export function encodeDevice(major: number, minor: number): number {
  return ((minor & 0xff) | (major << 8) | ((minor & ~0xff) << 12)) >>> 0;
}

export function decodeDevice(encoded: number): { major: number; minor: number } {
  return { major: (encoded >>> 8) & 0xfff, minor: (encoded & 0xff) | ((encoded >>> 12) & 0xfff00) };
}

export function alignUp(value: number, alignment: number): number {
  return Math.ceil(value / alignment) * alignment;
}

export function blocksOf(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES);
}

export function chunksOf(bytes: number): number {
  return Math.ceil(bytes / CHUNK_BYTES);
}
