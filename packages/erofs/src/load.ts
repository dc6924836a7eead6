import type { ChunkList } from './chunk-list.ts';
import { readExtents, readLink } from './image-content.ts';
import { readDirectory } from './image-directory.ts';
import { type ImageInode, readInode } from './image-inode.ts';
import { readXattrs } from './image-xattrs.ts';
import { BLOCK_BYTES } from './model.ts';
import {
  type DirectoryInode,
  type InodeHead,
  type LeafInode,
  newDirectory,
  newFile,
  newSpecial,
  newSymlink,
} from './tree.ts';
import type { ValidLayer } from './validate.ts';
import type { XattrPool } from './xattr-pool.ts';

export interface LoadContext {
  readonly pool: XattrPool;
  /** Gets the chunks of all files. */
  readonly chunks: ChunkList;
  /** The number by which `chunks` shall know a device of the layer. */
  deviceId(deviceId: number): number;
}

/** Reads the tree of a valid layer into memory. */
export function loadTree({ image }: ValidLayer, context: LoadContext): DirectoryInode {
  const linked = new Map<number, LeafInode>();
  const load = (inode: ImageInode) => {
    const { mode, uid, gid, mtimeSec, mtimeNsec } = inode;
    const xattrs = context.pool.intern(readXattrs(image, inode));
    return { mode, uid, gid, mtimeSec, mtimeNsec, xattrs };
  };
  const loadLeaf = (nid: number): LeafInode => {
    const known = linked.get(nid);
    if (known !== undefined) return known;
    const source = readInode(image, nid);
    const leaf = newLeaf(source, load(source));
    if (source.nlink > 1) linked.set(nid, leaf);
    return leaf;
  };
  const newLeaf = (source: ImageInode, head: InodeHead): LeafInode => {
    const { kind, sizeBytes, union } = source;
    if (kind === 'symlink') return newSymlink(head, readLink(image, source));
    if (kind !== 'file') return newSpecial(head, kind as 'char', union);
    const file = newFile(head, sizeBytes, context.chunks.length);
    for (const { deviceId, start } of readExtents(image, source)) {
      if (start === undefined) context.chunks.push(0, 0);
      else context.chunks.push(context.deviceId(deviceId), start / BLOCK_BYTES);
    }
    return file;
  };

  const rootSource = readInode(image, image.superBlock.rootNid);
  const root = newDirectory(load(rootSource));
  const pending = [{ source: rootSource, directory: root }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const { name, nid, kind } of readDirectory(image, next.source)) {
      if (name === '.' || name === '..') continue;
      if (kind === 'directory') {
        const source = readInode(image, nid);
        const directory = newDirectory(load(source));
        next.directory.children.set(name, { inode: directory, layer: 0 });
        pending.push({ source, directory });
      } else {
        const leaf = loadLeaf(nid);
        leaf.names += 1;
        next.directory.children.set(name, { inode: leaf, layer: 0 });
      }
    }
  }
  return root;
}
