import {
  alignUp,
  XATTR_COUNT_MAX,
  XATTR_ENTRY,
  XATTR_ENTRY_BYTES,
  XATTR_HEADER,
  XATTR_HEADER_BYTES,
  XATTR_PREFIXES,
  XATTR_SHARED_MAX,
} from './format.ts';
import type { Inode } from './tree.ts';
import type { Xattr, XattrSet } from './xattr-pool.ts';

/** The most that the xattrs of one inode take beside it. */
export const XATTR_BYTES_MAX = XATTR_HEADER_BYTES + (XATTR_COUNT_MAX - 1) * XATTR_ENTRY_BYTES;
/** From this many inodes on an xattr is kept once in the shared area, at four bytes an inode. */
const SHARED_USES_MIN = 2;
const NOTHING = Buffer.alloc(0);

export interface XattrEncoding {
  /** Entries that several inodes refer to, from the first byte of the shared area. */
  readonly sharedArea: Buffer;
  /** What follows an inode that has this set. */
  encoded(set: XattrSet): Buffer;
}

/** Encodes the xattrs of a tree. Depends on the tree alone, not on the order in which it was filled. */
export function encodeXattrs(inodes: readonly Inode[]): XattrEncoding {
  const usesOfSet = new Map<XattrSet, number>();
  for (const { xattrs } of inodes) usesOfSet.set(xattrs, (usesOfSet.get(xattrs) ?? 0) + 1);
  const usesOfXattr = new Map<Xattr, number>();
  for (const [set, uses] of usesOfSet) {
    for (const xattr of set.list) usesOfXattr.set(xattr, (usesOfXattr.get(xattr) ?? 0) + uses);
  }

  const sharedIds = new Map<Xattr, number>();
  const sharedEntries: Buffer[] = [];
  let sharedBytes = 0;
  for (const set of usesOfSet.keys()) {
    const several = set.list.filter((xattr) => (usesOfXattr.get(xattr) ?? 0) >= SHARED_USES_MIN);
    for (const xattr of several.slice(0, XATTR_SHARED_MAX)) {
      if (sharedIds.has(xattr)) continue;
      const entry = encodeEntry(xattr);
      sharedIds.set(xattr, sharedBytes / XATTR_ENTRY_BYTES);
      sharedEntries.push(entry);
      sharedBytes += entry.length;
    }
  }

  const encodedSets = new Map<XattrSet, Buffer>();
  for (const set of usesOfSet.keys()) encodedSets.set(set, encodeSet(set, sharedIds));
  return {
    sharedArea: Buffer.concat(sharedEntries),
    encoded: (set) => encodedSets.get(set) ?? NOTHING,
  };
}

/** Bytes that an xattr takes beside its inode when it is not shared. */
export function entryBytes(nameBytes: number, valueBytes: number): number {
  return alignUp(XATTR_ENTRY_BYTES + nameBytes + valueBytes, XATTR_ENTRY_BYTES);
}

function encodeSet(set: XattrSet, sharedIds: ReadonlyMap<Xattr, number>): Buffer {
  if (set.list.length === 0) return NOTHING;
  const header = Buffer.alloc(XATTR_HEADER_BYTES);
  const shared: Buffer[] = [];
  const own: Buffer[] = [];
  for (const xattr of set.list) {
    const id = sharedIds.get(xattr);
    if (id === undefined || shared.length === XATTR_SHARED_MAX) {
      own.push(encodeEntry(xattr));
    } else {
      const reference = Buffer.alloc(XATTR_ENTRY_BYTES);
      reference.writeUInt32LE(id);
      shared.push(reference);
    }
  }
  header[XATTR_HEADER.sharedCount] = shared.length;
  return Buffer.concat([header, ...shared, ...own]);
}

function encodeEntry({ name, value }: Xattr): Buffer {
  const row = XATTR_PREFIXES.find(([prefix]) => name.startsWith(prefix));
  if (row === undefined) throw new RangeError(`xattr ${name} has no prefix on disk`);
  const [prefix, index] = row;
  const suffix = name.slice(prefix.length);
  const entry = Buffer.alloc(entryBytes(suffix.length, value.length));
  entry[XATTR_ENTRY.nameBytes] = suffix.length;
  entry[XATTR_ENTRY.prefix] = index;
  entry.writeUInt16LE(value.length, XATTR_ENTRY.valueBytes);
  entry.write(suffix, XATTR_ENTRY_BYTES, 'latin1');
  value.copy(entry, XATTR_ENTRY_BYTES + suffix.length);
  return entry;
}
