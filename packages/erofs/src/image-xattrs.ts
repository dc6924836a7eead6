import {
  XATTR_ENTRY,
  XATTR_ENTRY_BYTES,
  XATTR_HEADER,
  XATTR_HEADER_BYTES,
  XATTR_PREFIXES,
} from './format.ts';
import { bytesAt, damaged, type ErofsImage } from './image.ts';
import type { ImageInode } from './image-inode.ts';
import { BLOCK_BYTES, type ByteString } from './model.ts';
import { entryBytes } from './xattr-encoding.ts';

export interface ImageXattr {
  readonly name: ByteString;
  readonly value: Buffer;
  /** What fills the entry up to four bytes. */
  readonly padding: Buffer;
  readonly encodedBytes: number;
}

const prefixOfIndex = new Map(XATTR_PREFIXES.map(([prefix, index]) => [index, prefix]));

/** All xattrs of an inode. Throws when two have one name. */
export function readXattrs(image: ErofsImage, inode: ImageInode): Map<ByteString, Buffer> {
  const xattrs = new Map<ByteString, Buffer>();
  const body = bytesAt(image.meta, inode.offset + inode.inodeBytes, inode.xattrBytes);
  if (body.length === 0) return xattrs;
  const { sharedIds, own } = splitXattrBody(body);
  const shared = sharedIds.map((id) => readSharedXattr(image, id));
  for (const { name, value } of [...shared, ...own]) {
    if (xattrs.has(name)) throw damaged(`has an xattr twice on one inode (nid ${inode.nid})`);
    xattrs.set(name, value);
  }
  return xattrs;
}

/** Takes what follows an inode apart: references into the shared area, and entries of its own. */
export function splitXattrBody(body: Buffer): { sharedIds: number[]; own: ImageXattr[] } {
  const sharedCount = body[XATTR_HEADER.sharedCount] ?? 0;
  const ownStart = XATTR_HEADER_BYTES + sharedCount * XATTR_ENTRY_BYTES;
  if (ownStart > body.length) throw damaged('has more shared xattrs than their list can hold');
  const sharedIds = Array.from({ length: sharedCount }, (_, index) =>
    body.readUInt32LE(XATTR_HEADER_BYTES + index * XATTR_ENTRY_BYTES),
  );
  const own: ImageXattr[] = [];
  for (let offset = ownStart; offset < body.length; ) {
    const xattr = parseXattr(body.subarray(offset));
    own.push(xattr);
    offset += xattr.encodedBytes;
  }
  return { sharedIds, own };
}

export function sharedXattrOffset(image: ErofsImage, id: number): number {
  return image.superBlock.xattrBlock * BLOCK_BYTES + id * XATTR_ENTRY_BYTES;
}

export function readSharedXattr(image: ErofsImage, id: number): ImageXattr {
  const offset = sharedXattrOffset(image, id);
  const head = bytesAt(image.meta, offset, XATTR_ENTRY_BYTES);
  return parseXattr(bytesAt(image.meta, offset, encodedBytesOf(head)));
}

function encodedBytesOf(head: Buffer): number {
  const nameBytes = head[XATTR_ENTRY.nameBytes] ?? 0;
  return entryBytes(nameBytes, head.readUInt16LE(XATTR_ENTRY.valueBytes));
}

function parseXattr(bytes: Buffer): ImageXattr {
  if (bytes.length < XATTR_ENTRY_BYTES) throw damaged('has an xattr that is cut short');
  const encodedBytes = encodedBytesOf(bytes);
  if (encodedBytes > bytes.length) throw damaged('has an xattr that is cut short');
  const prefix = prefixOfIndex.get(bytes[XATTR_ENTRY.prefix] ?? 0);
  if (prefix === undefined) throw damaged('has an xattr of an unknown kind');
  const valueStart = XATTR_ENTRY_BYTES + (bytes[XATTR_ENTRY.nameBytes] ?? 0);
  const valueEnd = valueStart + bytes.readUInt16LE(XATTR_ENTRY.valueBytes);
  const suffix = bytes.toString('latin1', XATTR_ENTRY_BYTES, valueStart);
  if (suffix.includes('\0')) throw damaged('has an xattr with a NUL in its name');
  return {
    name: prefix + suffix,
    value: bytes.subarray(valueStart, valueEnd),
    padding: bytes.subarray(valueEnd, encodedBytes),
    encodedBytes,
  };
}
