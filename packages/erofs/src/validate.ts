/**
 * Proves that a metadata image is one that our writer could have made, before the kernel or anything else
 * looks at it (THREATS B2): only the features we write, every reference inside its bounds, a tree without
 * cycles whose counts are right, and no byte without a meaning. Time and memory grow with the length of the
 * image alone.
 */
import { createClaims } from './claims.ts';
import type { LayerDevice } from './encode.ts';
import { RESERVED_NAME } from './entry-checks.ts';
import type { FileKind } from './format.ts';
import { damaged, type ErofsImage, memorySource, openErofs } from './image.ts';
import { type ImageInode, readInode } from './image-inode.ts';
import { META_BYTES_MAX } from './layout.ts';
import type { BuilderLimits } from './model.ts';
import { validateEntries, validateInode } from './validate-inode.ts';
import { checkDevices, checkSuperBlock, headEnd } from './validate-super.ts';
import type { Validation } from './validation.ts';

/** A metadata image that has been found good. Only `validateLayer` makes one. */
export interface ValidLayer {
  readonly image: ErofsImage;
  /** In device-table order: device id 1 is `devices[0]`. */
  readonly devices: readonly LayerDevice[];
  /** Names, the root's not counted. */
  readonly entries: number;
  readonly inodes: number;
  readonly contentBytes: number;
}

export interface ValidateContext {
  /**
   * Blocks that each blob of the device table really has; when undefined, the table's own figures are taken.
   */
  readonly deviceBlocks?: readonly number[];
}

/** Throws `layer-invalid` for anything that our writer would not have written, or that passes a limit. */
export function validateLayer(
  meta: Uint8Array,
  context: ValidateContext,
  limits: BuilderLimits,
): ValidLayer {
  const bytes = Buffer.from(meta.buffer, meta.byteOffset, meta.byteLength);
  if (bytes.length > Math.min(limits.metaBytesMax, META_BYTES_MAX)) {
    throw damaged(`has ${bytes.length} bytes, more than the limit`);
  }
  const image = openErofs(memorySource(bytes));
  checkSuperBlock(bytes, image);
  const devices = checkDevices(bytes, image, context.deviceBlocks);
  const claims = createClaims(bytes);
  claims.claim(0, headEnd(devices.length));
  const walk: Walk = {
    bytes,
    image,
    claims,
    limits,
    devices,
    usedDevices: new Set(),
    sharedXattrs: new Map(),
    contentBytes: 0,
    xattrBytes: 0,
    links: new Map(),
    inodes: 0,
    entries: 0,
  };
  walkTree(walk);
  claims.assertRestIsZero();
  const { entries, inodes, contentBytes } = walk;
  return { image, devices, entries, inodes, contentBytes };
}

interface Walk extends Validation {
  /** Names still to come of inodes that have several. */
  readonly links: Map<number, number>;
  inodes: number;
  entries: number;
}

interface DirectoryStep {
  readonly inode: ImageInode;
  readonly parentNid: number;
  readonly depth: number;
}

/** Breadth first in byte order, which is the order in which our writer numbers inodes. */
function walkTree(walk: Walk): void {
  const root = visitInode(walk, walk.image.superBlock.rootNid, 'directory');
  const steps: DirectoryStep[] = [{ inode: root, parentNid: root.nid, depth: 0 }];
  for (let index = 0; index < steps.length; index += 1) {
    const step = steps[index] as DirectoryStep;
    for (const inode of visitDirectory(walk, step)) {
      steps.push({ inode, parentNid: step.inode.nid, depth: step.depth + 1 });
    }
  }
  for (const [nid, left] of walk.links) {
    if (left !== 0) throw damaged(`has ${left} names too few for an inode (nid ${nid})`);
  }
  if (walk.inodes !== walk.image.superBlock.inodes) throw damaged('has a wrong count of inodes');
  if (walk.usedDevices.size !== walk.devices.length) throw damaged('has a device without use');
}

/** Returns the directories in this one. */
function visitDirectory(walk: Walk, { inode, parentNid, depth }: DirectoryStep): ImageInode[] {
  const subdirectories: ImageInode[] = [];
  let dots = 0;
  for (const { name, nid, kind } of validateEntries(walk, inode)) {
    if (name === '.' || name === '..') {
      dots += 1;
      if (nid !== (name === '.' ? inode.nid : parentNid) || kind !== 'directory') {
        throw damaged(`has a wrong ${name} in a directory (nid ${inode.nid})`);
      }
      continue;
    }
    if (depth === 0 && name === RESERVED_NAME) throw damaged(`has an entry /${RESERVED_NAME}`);
    walk.entries += 1;
    if (walk.entries > walk.limits.entriesMax) throw damaged('has too many entries');
    if (depth >= walk.limits.depthMax) throw damaged('is nested too deeply');
    if (kind === 'directory') subdirectories.push(visitInode(walk, nid, kind));
    else visitLeaf(walk, nid, kind);
  }
  if (dots !== 2) throw damaged(`has a directory (nid ${inode.nid}) without . or ..`);
  if (inode.nlink !== subdirectories.length + 2) {
    throw damaged(`has a directory (nid ${inode.nid}) with a wrong count of links`);
  }
  return subdirectories;
}

function visitLeaf(walk: Walk, nid: number, kind: FileKind): void {
  const left = walk.links.get(nid);
  if (left === undefined) {
    const { nlink } = visitInode(walk, nid, kind);
    if (nlink === 0) throw damaged(`has an inode (nid ${nid}) that nothing links`);
    if (nlink > 1) walk.links.set(nid, nlink - 1);
    return;
  }
  if (left === 0) throw damaged(`has more names for an inode (nid ${nid}) than it counts`);
  if (readInode(walk.image, nid).kind !== kind) throw damaged('calls an inode by a wrong type');
  walk.links.set(nid, left - 1);
}

/** Reads an inode that no entry has named before: its bytes can be claimed only once. */
function visitInode(walk: Walk, nid: number, kind: FileKind): ImageInode {
  const inode = readInode(walk.image, nid);
  if (inode.kind !== kind) throw damaged(`calls an inode (nid ${nid}) by a wrong type`);
  walk.inodes += 1;
  validateInode(walk, inode, walk.inodes);
  return inode;
}
