import { damaged, type ErofsImage } from './image.ts';
import { readDirectory } from './image-directory.ts';
import { type ImageInode, readInode } from './image-inode.ts';
import type { ByteString } from './model.ts';

export interface WalkedEntry {
  /** Relative to the root, which is the empty path. */
  readonly path: ByteString;
  readonly inode: ImageInode;
}

export interface WalkLimits {
  readonly entriesMax: number;
  readonly depthMax: number;
}

/**
 * Every name of an image, depth first, siblings in byte order, directories before what they hold. Also safe
 * on images that were not validated: a directory that is met twice and every limit that is passed is
 * `layer-invalid`.
 */
export function* walkImage(image: ErofsImage, limits: WalkLimits): Generator<WalkedEntry> {
  const root = readInode(image, image.superBlock.rootNid);
  if (root.kind !== 'directory') throw damaged('has a root that is no directory');
  yield { path: '', inode: root };
  const met = new Set([root.nid]);
  const stack = [{ path: '', entries: readDirectory(image, root) }];
  let entries = 0;
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const { done, value } = top.entries.next();
    if (done) {
      stack.pop();
      continue;
    }
    if (value.name === '.' || value.name === '..') continue;
    entries += 1;
    if (entries > limits.entriesMax) throw damaged(`has more than ${limits.entriesMax} entries`);
    if (stack.length > limits.depthMax) throw damaged(`is deeper than ${limits.depthMax}`);
    const inode = readInode(image, value.nid);
    if (inode.kind !== value.kind) throw damaged(`calls an inode (nid ${inode.nid}) a wrong type`);
    const path = top.path === '' ? value.name : `${top.path}/${value.name}`;
    yield { path, inode };
    if (inode.kind !== 'directory') continue;
    if (met.has(inode.nid)) throw damaged(`reaches a directory (nid ${inode.nid}) in two ways`);
    met.add(inode.nid);
    stack.push({ path, entries: readDirectory(image, inode) });
  }
}
