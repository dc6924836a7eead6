/** The state of a layer that is being built, and the rules by which entries meet in its tree. */
import { assert } from '@dsec/std';
import type { ChunkStore } from './chunk-store.ts';
import { checkAttributes, type ImportBudget, invalid, splitPath } from './entry-checks.ts';
import type { FileKind } from './format.ts';
import type { BuilderLimits, ByteString, InodeAttributes } from './model.ts';
import {
  DIRECTORY_MEMORY_BYTES,
  type DirectoryInode,
  type Entry,
  IMPLICIT_DIRECTORY,
  type Inode,
  type InodeHead,
  isOpaque,
  isWhiteout,
  newDirectory,
  newWhiteout,
  setHead,
} from './tree.ts';
import type { TreeEditor } from './tree-edit.ts';
import type { XattrPool } from './xattr-pool.ts';

export interface Build {
  readonly limits: BuilderLimits;
  /** Whether whiteouts remove what is there, or are kept for overlayfs. */
  readonly applies: boolean;
  readonly budget: ImportBudget;
  readonly pool: XattrPool;
  readonly chunks: ChunkStore;
  readonly editor: TreeEditor;
  readonly root: DirectoryInode;
  /** Number of the image layer that entries come from. */
  layer: number;
  /** Content bytes taken in so far. */
  contentBytes: number;
  /** Distinct chunks whose memory has been counted. */
  chargedChunks: number;
  fileIsOpen: boolean;
  finished: boolean;
}

/** A path taken apart, its directory present. */
export interface Spot {
  readonly directory: DirectoryInode;
  readonly name: ByteString;
  readonly entry: Entry | undefined;
}

export function assertReady(build: Build): void {
  assert(!build.finished, 'a finished layer builder is not used again');
  assert(!build.fileIsOpen, 'the file before has been ended');
}

/** Makes the directories on the way, in place of what is there and is none. */
export function openSpot(build: Build, path: ByteString): Spot {
  const spot = walkTo(build, path, (missing) => {
    build.budget.addEntry(path);
    return newDirectoryAt(build, path, missing, IMPLICIT_DIRECTORY);
  });
  if (spot === undefined) throw invalid(path, 'the root is a directory');
  return spot;
}

/** Changes nothing: undefined where a directory on the way is missing, and for the root. */
export function findSpot(build: Build, path: ByteString): Spot | undefined {
  return walkTo(build, path, () => undefined);
}

function walkTo(
  build: Build,
  path: ByteString,
  onMissing: (spot: Spot) => DirectoryInode | undefined,
): Spot | undefined {
  assertReady(build);
  const names = splitPath(path, build.limits.depthMax);
  const last = names.pop();
  let directory: DirectoryInode | undefined = build.root;
  for (const name of names) {
    const entry: Entry | undefined = directory.children.get(name);
    directory =
      entry?.inode.kind === 'directory' ? entry.inode : onMissing({ directory, name, entry });
    if (directory === undefined) return undefined;
  }
  if (last === undefined) return undefined;
  return { directory, name: last, entry: directory.children.get(last) };
}

export function put(build: Build, spot: Spot, inode: Inode): void {
  build.editor.place(spot.directory, spot.name, inode, build.layer);
}

/** Checks and counts an entry that a source describes. */
export function takeHead(
  build: Build,
  path: ByteString,
  kind: FileKind,
  attributes: InodeAttributes,
): InodeHead {
  checkAttributes(path, attributes);
  build.budget.addEntry(path);
  const { mode, uid, gid, mtimeSec, mtimeNsec } = attributes;
  const poolBytes = build.pool.memoryBytes;
  const xattrs = build.pool.intern(build.budget.addXattrs(path, kind, attributes.xattrs));
  build.budget.addMemory(path, build.pool.memoryBytes - poolBytes);
  return { mode, uid, gid, mtimeSec, mtimeNsec, xattrs };
}

/** The directory at `path`, made when missing; without a head an existing one keeps its attributes. */
export function openDirectory(
  build: Build,
  path: ByteString,
  head: InodeHead | undefined,
): DirectoryInode {
  if (path === '') {
    if (head !== undefined) updateHead(build, build.root, head);
    return build.root;
  }
  const spot = openSpot(build, path);
  const inode = spot.entry?.inode;
  if (inode?.kind !== 'directory') {
    return newDirectoryAt(build, path, spot, head ?? IMPLICIT_DIRECTORY);
  }
  if (head !== undefined) updateHead(build, inode, head);
  spot.directory.children.set(spot.name, { inode, layer: build.layer });
  return inode;
}

/** In place of a whiteout the directory is opaque: what the whiteout hides must not show up again. */
function newDirectoryAt(
  build: Build,
  path: ByteString,
  spot: Spot,
  head: InodeHead,
): DirectoryInode {
  build.budget.addMemory(path, DIRECTORY_MEMORY_BYTES);
  const hides = spot.entry !== undefined && isWhiteout(spot.entry.inode);
  const xattrs = hides ? build.pool.withOpaque(head.xattrs) : head.xattrs;
  const directory = newDirectory({ ...head, xattrs });
  put(build, spot, directory);
  return directory;
}

function updateHead(build: Build, directory: DirectoryInode, head: InodeHead): void {
  const xattrs = isOpaque(directory) ? build.pool.withOpaque(head.xattrs) : head.xattrs;
  setHead(directory, { ...head, xattrs });
}

export function makeOpaque(build: Build, directory: DirectoryInode): void {
  if (build.applies) build.editor.pruneEarlier(directory, build.layer);
  else directory.xattrs = build.pool.withOpaque(directory.xattrs);
}

/** Hides `path` of lower layers, and leaves what this layer itself has there. */
export function hide(build: Build, path: ByteString): void {
  assertReady(build);
  if (path === '') throw invalid(path, 'the root cannot be hidden');
  build.budget.addEntry(path);
  if (build.applies) applyWhiteout(build, path);
  else keepWhiteout(build, path);
}

function keepWhiteout(build: Build, path: ByteString): void {
  const spot = openSpot(build, path);
  if (spot.entry === undefined) put(build, spot, newWhiteout());
  else if (spot.entry.inode.kind === 'directory') makeOpaque(build, spot.entry.inode);
}

function applyWhiteout(build: Build, path: ByteString): void {
  const spot = findSpot(build, path);
  if (spot?.entry === undefined) return;
  const { inode, layer } = spot.entry;
  if (inode.kind === 'directory') build.editor.pruneEarlier(inode, build.layer);
  if (layer === build.layer) return;
  if (inode.kind === 'directory' && inode.children.size > 0) {
    setHead(inode, IMPLICIT_DIRECTORY);
    spot.directory.children.set(spot.name, { inode, layer: build.layer });
  } else {
    build.editor.unlink(spot.directory, spot.name);
  }
}
