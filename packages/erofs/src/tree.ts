/**
 * A layer's tree in memory: what a builder fills, what an image is loaded into, and what is encoded, hashed
 * and merged. Kept small, since a layer may hold millions of entries.
 */
import type { ByteString } from './model.ts';
import { OPAQUE_XATTR } from './xattr-policy.ts';
import { NO_XATTRS, type XattrSet } from './xattr-pool.ts';

/** What a name and its inode take beside the bytes of the name; measured on Node 20. */
export const ENTRY_MEMORY_BYTES = 240;
/** What a directory takes in addition, most of it for its map. */
export const DIRECTORY_MEMORY_BYTES = 220;

interface InodeBase {
  /** Permission, setuid, setgid and sticky bits. */
  mode: number;
  uid: number;
  gid: number;
  mtimeSec: number;
  mtimeNsec: number;
  xattrs: XattrSet;
  /** Names that lead here. A directory has one. */
  names: number;
  /** Where the inode is encoded; set by `planLayout`. */
  nid: number;
}

export interface DirectoryInode extends InodeBase {
  readonly kind: 'directory';
  readonly children: Map<ByteString, Entry>;
  /** Set by `inodesInOrder`: names in byte order, and the directory above (of the root: itself). */
  order: readonly ByteString[];
  parent: DirectoryInode | undefined;
  /** The last image layer for which `pruneEarlier` has been here. */
  prunedLayer: number;
  /** Set by `planLayout`: encoded length, and first of the blocks that do not fit beside the inode. */
  sizeBytes: number;
  dataBlock: number;
}

export interface FileInode extends InodeBase {
  readonly kind: 'file';
  readonly sizeBytes: number;
  /** Its first reference in the chunk list that belongs to the tree. */
  readonly chunkStart: number;
}

export interface SymlinkInode extends InodeBase {
  readonly kind: 'symlink';
  readonly target: ByteString;
  dataBlock: number;
}

export interface SpecialInode extends InodeBase {
  readonly kind: 'char' | 'block' | 'fifo' | 'socket';
  /** Encoded device number; 0 for pipes and sockets. */
  readonly device: number;
}

export type Inode = DirectoryInode | FileInode | SymlinkInode | SpecialInode;
export type LeafInode = Exclude<Inode, DirectoryInode>;

/** One name of an inode. `layer` is the number of the image layer that put the name there. */
export interface Entry {
  readonly inode: Inode;
  readonly layer: number;
}

/** What an inode has besides its content, with the xattrs already interned. */
export interface InodeHead {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly mtimeSec: number;
  readonly mtimeNsec: number;
  readonly xattrs: XattrSet;
}

/** Attributes of a directory that no entry describes, and of the root until one does. */
export const IMPLICIT_DIRECTORY: InodeHead = {
  mode: 0o755,
  uid: 0,
  gid: 0,
  mtimeSec: 0,
  mtimeNsec: 0,
  xattrs: NO_XATTRS,
};

/** Overlayfs looks at nothing but the device number of a whiteout. */
const WHITEOUT: InodeHead = { ...IMPLICIT_DIRECTORY, mode: 0 };

/** A directory without names, or one whose names nobody has sorted yet: shared, since there are many. */
const NO_NAMES: readonly ByteString[] = [];

// Every field by name, in one literal: an object that is spread into another takes a third more memory.

export function newDirectory(head: InodeHead): DirectoryInode {
  return {
    kind: 'directory',
    mode: head.mode,
    uid: head.uid,
    gid: head.gid,
    mtimeSec: head.mtimeSec,
    mtimeNsec: head.mtimeNsec,
    xattrs: head.xattrs,
    names: 1,
    nid: 0,
    children: new Map(),
    order: NO_NAMES,
    parent: undefined,
    prunedLayer: 0,
    sizeBytes: 0,
    dataBlock: 0,
  };
}

export function newFile(head: InodeHead, sizeBytes: number, chunkStart: number): FileInode {
  return {
    kind: 'file',
    mode: head.mode,
    uid: head.uid,
    gid: head.gid,
    mtimeSec: head.mtimeSec,
    mtimeNsec: head.mtimeNsec,
    xattrs: head.xattrs,
    names: 0,
    nid: 0,
    sizeBytes,
    chunkStart,
  };
}

export function newSymlink(head: InodeHead, target: ByteString): SymlinkInode {
  return {
    kind: 'symlink',
    mode: head.mode,
    uid: head.uid,
    gid: head.gid,
    mtimeSec: head.mtimeSec,
    mtimeNsec: head.mtimeNsec,
    xattrs: head.xattrs,
    names: 0,
    nid: 0,
    target,
    dataBlock: 0,
  };
}

export function newSpecial(
  head: InodeHead,
  kind: SpecialInode['kind'],
  device: number,
): SpecialInode {
  return {
    kind,
    mode: head.mode,
    uid: head.uid,
    gid: head.gid,
    mtimeSec: head.mtimeSec,
    mtimeNsec: head.mtimeNsec,
    xattrs: head.xattrs,
    names: 0,
    nid: 0,
    device,
  };
}

export function newWhiteout(): SpecialInode {
  return newSpecial(WHITEOUT, 'char', 0);
}

/** Overlayfs takes every character device 0:0 of a layer for a whiteout. */
export function isWhiteout(inode: Inode): boolean {
  return inode.kind === 'char' && inode.device === 0;
}

export function isOpaque(directory: DirectoryInode): boolean {
  return directory.xattrs.list.some((xattr) => xattr.name === OPAQUE_XATTR);
}

export function setHead(directory: DirectoryInode, head: InodeHead): void {
  const { mode, uid, gid, mtimeSec, mtimeNsec, xattrs } = head;
  Object.assign(directory, { mode, uid, gid, mtimeSec, mtimeNsec, xattrs });
}

/**
 * Every inode once, parents before children: breadth first, names in byte order, so that the inodes of one
 * directory are neighbours. Never recurses, since a tree may be deeper than the stack.
 */
export function inodesInOrder(root: DirectoryInode): Inode[] {
  const inodes: Inode[] = [root];
  const linked = new Set<Inode>();
  root.parent = root;
  for (let index = 0; index < inodes.length; index += 1) {
    const directory = inodes[index] as Inode;
    if (directory.kind !== 'directory') continue;
    // Characters up to U+00FF sort as the bytes that they stand for.
    directory.order =
      directory.children.size === 0 ? NO_NAMES : [...directory.children.keys()].sort();
    for (const name of directory.order) {
      const { inode } = directory.children.get(name) as Entry;
      if (inode.kind === 'directory') inode.parent = directory;
      if (inode.names > 1) {
        if (linked.has(inode)) continue;
        linked.add(inode);
      }
      inodes.push(inode);
    }
  }
  return inodes;
}
