import type { ByteString } from './model.ts';
import {
  type DirectoryInode,
  type FileInode,
  IMPLICIT_DIRECTORY,
  type Inode,
  setHead,
} from './tree.ts';

/** Changes to a tree that keep the counts of names right and tell when a file has lost its last name. */
export interface TreeEditor {
  /** Gives `inode` a name, in place of what has it now. */
  place(directory: DirectoryInode, name: ByteString, inode: Inode, layer: number): void;
  unlink(directory: DirectoryInode, name: ByteString): void;
  /**
   * Removes below `directory` everything whose name came from a layer before `layer`. A directory that must
   * stay for what `layer` put into it gets the attributes of one that no entry describes.
   */
  pruneEarlier(directory: DirectoryInode, layer: number): void;
}

export function createTreeEditor(onFileGone: (file: FileInode) => void): TreeEditor {
  const drop = (inode: Inode) => {
    const gone = [inode];
    for (let next = gone.pop(); next !== undefined; next = gone.pop()) {
      next.names -= 1;
      if (next.kind === 'directory') {
        for (const child of next.children.values()) gone.push(child.inode);
      } else if (next.kind === 'file' && next.names === 0) {
        onFileGone(next);
      }
    }
  };

  const unlink = (directory: DirectoryInode, name: ByteString) => {
    const entry = directory.children.get(name);
    if (entry === undefined) return;
    directory.children.delete(name);
    drop(entry.inode);
  };

  const pruneOne = (directory: DirectoryInode, layer: number) => {
    directory.prunedLayer = layer;
    for (const [name, entry] of directory.children) {
      if (entry.layer === layer) continue;
      if (entry.inode.kind !== 'directory' || entry.inode.children.size === 0) {
        unlink(directory, name);
      } else {
        setHead(entry.inode, IMPLICIT_DIRECTORY);
        directory.children.set(name, { inode: entry.inode, layer });
      }
    }
  };

  return {
    place(directory, name, inode, layer) {
      // First, since the inode may live in what is replaced.
      if (inode.kind !== 'directory') inode.names += 1;
      unlink(directory, name);
      directory.children.set(ownCopy(name), { inode, layer });
    },
    unlink,
    pruneEarlier(directory, layer) {
      // What has been pruned for this layer holds nothing earlier, so many marks on one tree cost one walk.
      const directories = [directory];
      for (let index = 0; index < directories.length; index += 1) {
        for (const { inode } of (directories[index] as DirectoryInode).children.values()) {
          if (inode.kind === 'directory' && inode.prunedLayer < layer) directories.push(inode);
        }
      }
      for (const each of directories.reverse()) if (each.prunedLayer < layer) pruneOne(each, layer);
    },
  };
}

/** A part of a longer string keeps all of it in memory, and a name is a part of a path. */
function ownCopy(name: ByteString): ByteString {
  return Buffer.from(name, 'latin1').toString('latin1');
}
