import type { FileAttributesFields, FileKind } from '@dsec/protocol';
import { type Clock, DsecError } from '@dsec/std';

/** A tree in memory. Paths and names are Latin-1 text: one character for each byte. */
export interface SimFiles {
  read(path: string, user?: SimUser): Uint8Array;
  write(path: string, bytes: Uint8Array, options?: WriteOptions): void;
  /** Throws what `write` would throw because of the name alone. */
  checkWrite(path: string, options?: WriteOptions): void;
  stat(path: string, followSymlinks: boolean): FileAttributesFields;
  /** Sorted by name, so that a cursor is the last name of the page before. */
  list(path: string): readonly FileAttributesFields[];
  mkdir(path: string, options?: MakeOptions): void;
  symlink(target: string, path: string): void;
  move(source: string, target: string, replace: boolean): void;
  remove(path: string, recursive: boolean): void;
  limit(limits: { bytesMax?: number; inodesMax?: number }): void;
  readonly usedBytes: number;
  readonly usedInodes: number;
}

export interface SimUser {
  readonly uid: number;
  readonly gid: number;
}

export interface MakeOptions {
  readonly mode?: number | undefined;
  readonly createParents?: boolean;
  readonly user?: SimUser;
}

export interface WriteOptions extends MakeOptions {
  readonly exclusive?: boolean;
}

export const ROOT: SimUser = { uid: 0, gid: 0 };
const SYMLINKS_MAX = 40;
const NAME_LENGTH_MAX = 255;

interface Node {
  readonly kind: FileKind;
  readonly mode: number;
  readonly user: SimUser;
  readonly mtimeMs: number;
  readonly bytes: Uint8Array;
  /** Of a directory alone. */
  readonly children: Map<string, Node> | undefined;
}

/** Where a path leads: its last name in its directory, whether or not there is something. */
interface Place {
  readonly directory: Map<string, Node>;
  readonly name: string;
  readonly node: Node | undefined;
}

interface Volume {
  readonly root: Node;
  readonly clock: Clock;
  bytesMax: number;
  inodesMax: number;
  usedBytes: number;
  usedInodes: number;
}

export interface SimFilesOptions {
  readonly clock: Clock;
  readonly bytesMax: number;
  readonly inodesMax: number;
}

export function createSimFiles(options: SimFilesOptions): SimFiles {
  const root = makeNode(options.clock, 'directory', { mode: 0o755 });
  const volume: Volume = { ...options, root, usedBytes: 0, usedInodes: 0 };
  const files: SimFiles = {
    read: (path, user = ROOT) => readFile(volume, path, user),
    write: (path, bytes, write = {}) => writeFile(volume, path, bytes, write),
    checkWrite: (path, write = {}) => void placeToWrite(volume, path, write),
    stat(path, followSymlinks) {
      const { name, node } = resolve(volume, path, followSymlinks);
      if (node === undefined) throw missing(path);
      return attributesOf(name, node);
    },
    list(path) {
      const children = directoryAt(volume, path);
      return [...children]
        .sort(([one], [other]) => (one < other ? -1 : 1))
        .map(([name, node]) => attributesOf(name, node));
    },
    mkdir: (path, make = {}) => void makeDirectory(volume, path, make),
    symlink(target, path) {
      const place = emptyPlace(volume, path);
      const bytes = Buffer.from(target, 'latin1');
      add(volume, place, makeNode(volume.clock, 'symlink', { mode: 0o777 }, bytes));
    },
    move: (source, target, replace) => move(volume, source, target, replace),
    remove: (path, recursive) => remove(volume, path, recursive),
    limit({ bytesMax, inodesMax }) {
      volume.bytesMax = bytesMax ?? volume.bytesMax;
      volume.inodesMax = inodesMax ?? volume.inodesMax;
    },
    get usedBytes() {
      return volume.usedBytes;
    },
    get usedInodes() {
      return volume.usedInodes;
    },
  };
  for (const path of ['/tmp', '/etc', '/usr/bin']) files.mkdir(path, { createParents: true });
  files.write('/etc/passwd', Buffer.from('root:x:0:0::/root:/bin/sh\n'));
  return files;
}

function makeNode(
  clock: Clock,
  kind: FileKind,
  { mode = 0o644, user = ROOT }: MakeOptions,
  bytes: Uint8Array = new Uint8Array(0),
): Node {
  const children = kind === 'directory' ? new Map<string, Node>() : undefined;
  return { kind, mode, user, mtimeMs: clock.wallMs(), bytes, children };
}

function missing(path: string): DsecError {
  return new DsecError('not-found', `there is no ${path}`);
}

function notDirectory(path: string): DsecError {
  return new DsecError('invalid-argument', `${path} is no directory`);
}

/** Follows a path as the kernel does; `..` of the root is the root, so nothing leads out. */
function resolve(volume: Volume, path: string, followLast = true): Place {
  let left = path.split('/').filter((name) => name !== '' && name !== '.');
  const above: Node[] = [];
  let at = volume.root;
  for (let links = 0; ; ) {
    const name = left.shift();
    if (at.children === undefined) throw notDirectory(path);
    if (name === undefined) return { directory: at.children, name: '', node: at };
    if (name.length > NAME_LENGTH_MAX) throw new DsecError('invalid-argument', 'name too long');
    if (name === '..') {
      at = above.pop() ?? volume.root;
      continue;
    }
    const node = at.children.get(name);
    const isLast = left.length === 0;
    if (node?.kind === 'symlink' && (!isLast || followLast)) {
      links += 1;
      if (links > SYMLINKS_MAX) throw new DsecError('invalid-argument', `${path}: too many links`);
      const target = Buffer.from(node.bytes).toString('latin1');
      if (target.startsWith('/')) {
        above.length = 0;
        at = volume.root;
      }
      left = [...target.split('/').filter((part) => part !== '' && part !== '.'), ...left];
      continue;
    }
    if (isLast) return { directory: at.children, name, node };
    if (node === undefined) throw missing(path);
    above.push(at);
    at = node;
  }
}

function directoryAt(volume: Volume, path: string): Map<string, Node> {
  const { node } = resolve(volume, path);
  if (node === undefined) throw missing(path);
  if (node.children === undefined) throw notDirectory(path);
  return node.children;
}

function add(volume: Volume, { directory, name, node: before }: Place, node: Node): void {
  const bytes = volume.usedBytes + node.bytes.byteLength - (before?.bytes.byteLength ?? 0);
  const inodes = volume.usedInodes + (before === undefined ? 1 : 0);
  if (bytes > volume.bytesMax || inodes > volume.inodesMax) {
    throw new DsecError('storage-full', 'the disk is full');
  }
  volume.usedBytes = bytes;
  volume.usedInodes = inodes;
  directory.set(name, node);
}

function readFile(volume: Volume, path: string, user: SimUser): Uint8Array {
  const { node } = resolve(volume, path);
  if (node === undefined) throw missing(path);
  if (node.kind !== 'file') throw new DsecError('invalid-argument', `${path} is no regular file`);
  const shift = user.uid === node.user.uid ? 6 : user.gid === node.user.gid ? 3 : 0;
  if (user.uid !== 0 && ((node.mode >> shift) & 4) === 0) {
    throw new DsecError('permission-denied', `${path} may not be read`);
  }
  return node.bytes;
}

function placeToWrite(volume: Volume, path: string, options: WriteOptions): Place {
  if (options.createParents) {
    const parent = path.slice(0, path.lastIndexOf('/'));
    if (parent !== '') makeDirectory(volume, parent, { ...options, mode: undefined });
  }
  const place = resolve(volume, path);
  if (options.exclusive && place.node !== undefined) throw exists(path);
  if (place.node !== undefined && place.node.kind !== 'file') {
    throw new DsecError('invalid-argument', `${path} is no regular file`);
  }
  return place;
}

function writeFile(volume: Volume, path: string, bytes: Uint8Array, options: WriteOptions): void {
  const place = placeToWrite(volume, path, options);
  const mode = options.mode ?? place.node?.mode;
  const user = place.node?.user ?? options.user ?? ROOT;
  add(volume, place, makeNode(volume.clock, 'file', { mode, user }, bytes));
}

function exists(path: string): DsecError {
  return new DsecError('already-exists', `${path} exists`);
}

function emptyPlace(volume: Volume, path: string): Place {
  const place = resolve(volume, path, false);
  if (place.node !== undefined) throw exists(path);
  return place;
}

function makeDirectory(volume: Volume, path: string, options: MakeOptions): void {
  const { mode, createParents = false, user = ROOT } = options;
  const names = path.split('/').filter((name) => name !== '');
  for (let depth = createParents ? 1 : names.length; depth < names.length; depth += 1) {
    const place = resolve(volume, `/${names.slice(0, depth).join('/')}`);
    if (place.node === undefined) {
      add(volume, place, makeNode(volume.clock, 'directory', { mode: 0o755, user }));
    }
  }
  const place = resolve(volume, path);
  if (createParents && place.node?.kind === 'directory') return;
  if (place.node !== undefined) throw exists(path);
  add(volume, place, makeNode(volume.clock, 'directory', { mode: mode ?? 0o755, user }));
}

function move(volume: Volume, source: string, target: string, replace: boolean): void {
  const from = resolve(volume, source, false);
  if (from.node === undefined || from.name === '') throw missing(source);
  const to = resolve(volume, target, false);
  if (to.node === from.node) return;
  if (to.node !== undefined && !replace) throw exists(target);
  if (to.node?.children !== undefined && to.node.children.size > 0) throw notEmpty(target);
  if (isBelow(from.node, to.directory)) {
    throw new DsecError('invalid-argument', `${target} is below ${source}`);
  }
  if (to.node !== undefined) discard(volume, to, to.node);
  from.directory.delete(from.name);
  to.directory.set(to.name, from.node);
}

function isBelow(node: Node, directory: Map<string, Node>): boolean {
  if (node.children === undefined) return false;
  if (node.children === directory) return true;
  return [...node.children.values()].some((child) => isBelow(child, directory));
}

function notEmpty(path: string): DsecError {
  return new DsecError('state-conflict', `${path} is not empty`);
}

function remove(volume: Volume, path: string, recursive: boolean): void {
  const place = resolve(volume, path, false);
  if (place.node === undefined) throw missing(path);
  if (place.name === '') throw new DsecError('invalid-argument', 'the root stays');
  if (!recursive && (place.node.children?.size ?? 0) > 0) throw notEmpty(path);
  discard(volume, place, place.node);
}

function discard(volume: Volume, { directory, name }: Place, node: Node): void {
  for (const [childName, child] of node.children ?? []) {
    discard(volume, { directory: node.children ?? directory, name: childName, node: child }, child);
  }
  volume.usedBytes -= node.bytes.byteLength;
  volume.usedInodes -= 1;
  directory.delete(name);
}

function attributesOf(name: string, node: Node): FileAttributesFields {
  const isLink = node.kind === 'symlink';
  return {
    name: Buffer.from(name, 'latin1'),
    kind: node.kind,
    mode: node.mode & 0o7777,
    uid: node.user.uid,
    gid: node.user.gid,
    sizeBytes: node.bytes.byteLength,
    allocatedBytes: node.bytes.byteLength,
    links: 1,
    mtimeSeconds: Math.floor(node.mtimeMs / 1000),
    mtimeNanoseconds: Math.floor((node.mtimeMs % 1000) * 1e6),
    ...(isLink && { symlinkTarget: node.bytes }),
  };
}
