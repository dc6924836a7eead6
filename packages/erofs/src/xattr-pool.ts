import type { ByteString } from './model.ts';
import { OPAQUE_VALUE, OPAQUE_XATTR } from './xattr-policy.ts';

export interface Xattr {
  readonly name: ByteString;
  readonly value: Buffer;
}

/** The xattrs of an inode, sorted by name. Inodes with the same xattrs share one set. */
export interface XattrSet {
  readonly list: readonly Xattr[];
}

export const NO_XATTRS: XattrSet = { list: [] };

export interface XattrPool {
  /** What the pool takes of memory, roughly: small xattrs cost far more than their bytes. */
  readonly memoryBytes: number;
  /** The set that holds exactly these, of which no two have one name. Values are copied. */
  intern(xattrs: Iterable<readonly [name: ByteString, value: Uint8Array]>): XattrSet;
  withOpaque(set: XattrSet): XattrSet;
  withoutOpaque(set: XattrSet): XattrSet;
}

/** Objects, map slots and the key that holds name and value once more; measured on Node 20. */
const XATTR_OVERHEAD_BYTES = 600;
const SET_OVERHEAD_BYTES = 200;
const SET_MEMBER_BYTES = 16;

/** Keeps each xattr and each set of xattrs once: most files of a tree carry one of a few sets. */
export function createXattrPool(): XattrPool {
  const members = new Map<string, { readonly id: number; readonly xattr: Xattr }>();
  const sets = new Map<string, XattrSet>();
  let memoryBytes = 0;

  const internOne = (name: ByteString, value: Uint8Array) => {
    const copy = Buffer.from(value);
    const key = `${name}\0${copy.toString('latin1')}`;
    let member = members.get(key);
    if (member === undefined) {
      member = { id: members.size, xattr: { name, value: copy } };
      members.set(key, member);
      memoryBytes += 2 * key.length + XATTR_OVERHEAD_BYTES;
    }
    return member;
  };

  const intern = (xattrs: Iterable<readonly [ByteString, Uint8Array]>) => {
    const found = Array.from(xattrs, ([name, value]) => internOne(name, value));
    if (found.length === 0) return NO_XATTRS;
    found.sort((a, b) => (a.xattr.name < b.xattr.name ? -1 : 1));
    const key = found.map((member) => member.id).join();
    let set = sets.get(key);
    if (set === undefined) {
      set = { list: found.map((member) => member.xattr) };
      sets.set(key, set);
      memoryBytes += SET_OVERHEAD_BYTES + SET_MEMBER_BYTES * found.length;
    }
    return set;
  };

  const pairsBut = (set: XattrSet, name: ByteString) =>
    set.list.filter((xattr) => xattr.name !== name).map((x) => [x.name, x.value] as const);

  return {
    get memoryBytes() {
      return memoryBytes;
    },
    intern,
    withOpaque: (set) => intern([...pairsBut(set, OPAQUE_XATTR), [OPAQUE_XATTR, OPAQUE_VALUE]]),
    withoutOpaque: (set) => intern(pairsBut(set, OPAQUE_XATTR)),
  };
}
