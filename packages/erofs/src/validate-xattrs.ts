import { assertZero } from './claims.ts';
import { XATTR_HEADER, XATTR_HEADER_BYTES } from './format.ts';
import { bytesAt, damaged } from './image.ts';
import type { ImageInode } from './image-inode.ts';
import {
  type ImageXattr,
  readSharedXattr,
  sharedXattrOffset,
  splitXattrBody,
} from './image-xattrs.ts';
import { BLOCK_BYTES } from './model.ts';
import type { SharedXattr, Validation } from './validation.ts';
import { keepXattr, OPAQUE_VALUE, OPAQUE_XATTR } from './xattr-policy.ts';

/**
 * Checks the xattrs of an inode whose own bytes have been claimed; claims shared ones when they are first
 * met.
 */
export function validateXattrs(v: Validation, inode: ImageInode): void {
  if (inode.xattrBytes === 0) return;
  const body = bytesAt(v.image.meta, inode.offset + inode.inodeBytes, inode.xattrBytes);
  assertZero(body, XATTR_HEADER.filter, XATTR_HEADER.sharedCount);
  assertZero(body, XATTR_HEADER.reserved, XATTR_HEADER_BYTES);
  const { sharedIds, own } = splitXattrBody(body);

  const names = new Set<string>();
  let inodeBytes = 0;
  const add = ({ name, value }: ImageXattr) => {
    if (names.has(name)) throw damaged(`has an xattr twice on one inode (nid ${inode.nid})`);
    names.add(name);
    inodeBytes += name.length + value.length;
  };
  for (const id of sharedIds) add(useShared(v, id, inode));
  for (const xattr of own) {
    checkXattr(v, xattr, inode);
    add(xattr);
  }
  v.xattrBytes += inodeBytes;
  if (inodeBytes > v.limits.xattrBytesPerInodeMax || v.xattrBytes > v.limits.xattrBytesMax) {
    throw damaged('has more xattr bytes than the limit');
  }
}

function useShared(v: Validation, id: number, inode: ImageInode): ImageXattr {
  const known = v.sharedXattrs.get(id) ?? claimShared(v, id);
  if (!known.allowedOn.has(inode.kind) || isRoot(v, inode)) {
    checkXattr(v, known.xattr, inode);
    known.allowedOn.add(inode.kind);
  }
  return known.xattr;
}

function claimShared(v: Validation, id: number): SharedXattr {
  const start = sharedXattrOffset(v.image, id);
  const xattr = readSharedXattr(v.image, id);
  const end = start + xattr.encodedBytes;
  if (end > v.image.superBlock.metaBlock * BLOCK_BYTES) throw damaged('has a misplaced xattr');
  v.claims.claim(start, end);
  const shared: SharedXattr = { xattr, allowedOn: new Set() };
  v.sharedXattrs.set(id, shared);
  return shared;
}

function checkXattr(v: Validation, { name, value, padding }: ImageXattr, inode: ImageInode): void {
  assertZero(padding, 0, padding.length);
  const isOpaque = name === OPAQUE_XATTR && OPAQUE_VALUE.equals(value);
  if (isOpaque && inode.kind === 'directory' && !isRoot(v, inode)) return;
  if (keepXattr(inode.kind, name, value) !== 'keep')
    throw damaged('has an xattr that is not allowed');
}

function isRoot(v: Validation, inode: ImageInode): boolean {
  return inode.nid === v.image.superBlock.rootNid;
}
