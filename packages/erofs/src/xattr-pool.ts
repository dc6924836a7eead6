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
  /** The set that holds exactly these, of which no two have one name. Values are copied. */
  intern(xattrs: Iterable<readonly [name: ByteString, value: Uint8Array]>): XattrSet;
  withOpaque(set: XattrSet): XattrSet;
  withoutOpaque(set: XattrSet): XattrSet;
}

/** Keeps each xattr and each set of xattrs once: most files of a tree carry one of a few sets. */
export function createXattrPool(): XattrPool {
  const members = new Map<string, { readonly id: number; readonly xattr: Xattr }>();
  const sets = new Map<string, XattrSet>();

  const internOne = (name: ByteString, value: Uint8Array) => {
    const copy = Buffer.from(value);
    const key = `${name}\0${copy.toString('latin1')}`;
    let member = members.get(key);
    if (member === undefined) {
      member = { id: members.size, xattr: { name, value: copy } };
      members.set(key, member);
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
    }
    return set;
  };

  const pairsBut = (set: XattrSet, name: ByteString) =>
    set.list.filter((xattr) => xattr.name !== name).map((x) => [x.name, x.value] as const);

  return {
    intern,
    withOpaque: (set) => intern([...pairsBut(set, OPAQUE_XATTR), [OPAQUE_XATTR, OPAQUE_VALUE]]),
    withoutOpaque: (set) => intern(pairsBut(set, OPAQUE_XATTR)),
  };
}
