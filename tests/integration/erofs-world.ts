/**
 * How the tests of EROFS look at an image: through the kernel, through our reader, and through erofs-utils.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  type BigIntStats,
  closeSync,
  existsSync,
  fstatSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import {
  type BlobSink,
  type BuilderLimits,
  type BuiltLayer,
  type ByteSource,
  type ByteString,
  createFileBlobSink,
  createLayerBuilder,
  type DedupSource,
  type ErofsImage,
  fileSource,
  type LayerBuilder,
  memorySource,
  openErofs,
  readContent,
  readLink,
  readXattrs,
  walkImage,
} from '@dsec/erofs';
import { getXattr, listXattrs, type MountFd, mountErofs, punchHole } from '@dsec/linux';
import type { Listing, Shown } from './erofs-tree.ts';

export const isRoot = process.getuid?.() === 0;
export const isLong = process.env.DSEC_TEST_LONG === '1';
/** For tests that go through many cases. */
export const MANY_CASES = { timeout: isLong ? 3_600_000 : 300_000 };

export const LIMITS: BuilderLimits = {
  entriesMax: 200_000,
  contentBytesMax: 2 ** 40,
  fileBytesMax: 2 ** 40,
  depthMax: 200,
  xattrBytesPerInodeMax: 65_536,
  xattrBytesMax: 2 ** 26,
  metaBytesMax: 2 ** 28,
  memoryBytesMax: 2 ** 30,
};

/** A layer on disk. */
export interface LayerFiles {
  readonly built: BuiltLayer;
  readonly metaPath: string;
  readonly blobPath: string;
}

export interface Workshop {
  readonly path: string;
  /** Removes what is in the directory. */
  clear(): void;
  build(fill: (builder: LayerBuilder) => void, options?: BuildOptions): LayerFiles;
  remove(): void;
}

export interface BuildOptions {
  readonly whiteouts?: 'keep' | 'apply';
  readonly dedupSources?: readonly DedupSource[];
}

/** A directory for layers that goes away with `remove`. */
export function openWorkshop(): Workshop {
  const path = mkdtempSync(join(tmpdir(), 'dsec-erofs-'));
  let made = 0;
  return {
    path,
    clear() {
      for (const name of readdirSync(path)) rmSync(join(path, name), { recursive: true });
    },
    build(fill, { whiteouts = 'keep', dedupSources = [] } = {}) {
      made += 1;
      const metaPath = join(path, `${made}.meta`);
      const blobPath = join(path, `${made}.blob`);
      const fd = openSync(blobPath, 'w+');
      try {
        const blob: BlobSink = createFileBlobSink(fd, punchHole);
        const builder = createLayerBuilder({ blob, whiteouts, dedupSources, limits: LIMITS });
        fill(builder);
        const built = builder.finish();
        writeFileSync(metaPath, built.meta);
        return { built, metaPath, blobPath };
      } finally {
        closeSync(fd);
      }
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

/**
 * Mounts, calls `look` with a path of the root, and unmounts. The mount is detached: no other process sees
 * it.
 */
export function withMount<T>(mount: MountFd, look: (root: string) => T): T {
  try {
    return look(`/proc/self/fd/${mount.fd}/.`);
  } finally {
    mount.close();
  }
}

export function mountLayer(metaPath: string, blobPaths: readonly string[]): MountFd {
  return mountErofs({ metaPath, devices: blobPaths });
}

const kindOfMode = new Map([
  [0o010000, 'fifo'],
  [0o020000, 'char'],
  [0o040000, 'directory'],
  [0o060000, 'block'],
  [0o100000, 'file'],
  [0o120000, 'symlink'],
  [0o140000, 'socket'],
]);

/**
 * Everything below a directory of this host, by lstat(2), readlink(2), listxattr(2) and read(2). Overlayfs
 * may list the name of a whiteout and then say that there is nothing: such a name is no entry.
 */
export function listHost(root: string): Listing {
  const draft = new Map<ByteString, Omit<Shown, 'sameAs'> & { inode: string }>();
  const visit = (relative: ByteString) => {
    const path = Buffer.from(relative === '' ? root : `${root}/${relative}`, 'latin1');
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    if (stats === undefined) return;
    const shown = showHost(path, stats);
    draft.set(relative, {
      ...shown,
      inode: shown.kind === 'directory' ? relative : `${stats.dev}:${stats.ino}`,
    });
    if (shown.kind !== 'directory') return;
    for (const entry of readdirSync(path, { encoding: 'buffer' })) {
      const name = entry.toString('latin1');
      visit(relative === '' ? name : `${relative}/${name}`);
    }
  };
  visit('');
  return groupByInode(draft);
}

function showHost(path: Buffer, stats: BigIntStats): Omit<Shown, 'sameAs'> {
  const mode = Number(stats.mode);
  const kind = kindOfMode.get(mode & 0o170000) ?? 'unknown';
  const xattrs = listXattrs(path).map((n) => [n, getXattr(path, n)?.toString('hex') ?? 'none']);
  const isDevice = kind === 'char' || kind === 'block';
  const device = Number(stats.rdev);
  return {
    kind,
    mode: mode & 0o7777,
    uid: Number(stats.uid),
    gid: Number(stats.gid),
    nlink: Number(stats.nlink),
    mtimeNs: stats.mtimeNs,
    sizeBytes: kind === 'file' || kind === 'symlink' ? Number(stats.size) : 0,
    device: isDevice ? `${majorOf(device)}:${minorOf(device)}` : '0:0',
    target: kind === 'symlink' ? readlinkSync(path, { encoding: 'latin1' }) : '',
    xattrs: Object.fromEntries(xattrs),
    content: kind === 'file' ? hashFile(path) : '',
  };
}

/** glibc's `dev_t`: the low 8 bits of minor, 12 of major, then the rest of minor. */
const majorOf = (device: number) => Math.floor(device / 2 ** 8) & 0xfff;
const minorOf = (device: number) =>
  (device & 0xff) | ((Math.floor(device / 2 ** 12) & 0xfff00) >>> 0);

function hashFile(path: Buffer): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** The same by our reader. */
export function listImage(image: ErofsImage): Listing {
  const draft = new Map<ByteString, Omit<Shown, 'sameAs'> & { inode: string }>();
  for (const { path, inode } of walkImage(image, LIMITS)) {
    const { kind, mode, uid, gid, nlink, union } = inode;
    const xattrs = [...readXattrs(image, inode)].map(([n, v]) => [n, v.toString('hex')]);
    const isDevice = kind === 'char' || kind === 'block';
    draft.set(path, {
      kind,
      mode,
      uid,
      gid,
      nlink,
      mtimeNs: BigInt(inode.mtimeSec) * 1_000_000_000n + BigInt(inode.mtimeNsec),
      sizeBytes: kind === 'file' || kind === 'symlink' ? inode.sizeBytes : 0,
      device: isDevice ? `${majorOf(union)}:${minorOf(union)}` : '0:0',
      target: kind === 'symlink' ? readLink(image, inode) : '',
      xattrs: Object.fromEntries(xattrs),
      content: kind === 'file' ? hashContent(image, inode) : '',
      inode: kind === 'directory' ? path : `${inode.nid}`,
    });
  }
  return groupByInode(draft);
}

function hashContent(image: ErofsImage, inode: Parameters<typeof readContent>[1]): string {
  const hash = createHash('sha256');
  for (const part of readContent(image, inode)) {
    hash.update(part.kind === 'data' ? part.bytes : Buffer.alloc(part.length));
  }
  return hash.digest('hex');
}

function groupByInode(
  draft: ReadonlyMap<ByteString, Omit<Shown, 'sameAs'> & { inode: string }>,
): Listing {
  const first = new Map<string, ByteString>();
  for (const path of [...draft.keys()].sort()) {
    const inode = draft.get(path)?.inode ?? '';
    if (!first.has(inode)) first.set(inode, path);
  }
  const listing: Listing = new Map();
  for (const [path, { inode, ...shown }] of draft) {
    listing.set(path, { ...shown, sameAs: first.get(inode) ?? path });
  }
  return listing;
}

/** The listing as an object with sorted keys, which a failed comparison prints well. */
export function plain(listing: Listing): Record<string, Shown> {
  return Object.fromEntries([...listing].sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function openFiles(
  metaPath: string,
  blobPaths: readonly string[],
): {
  image: ErofsImage;
  close(): void;
} {
  const fds = blobPaths.map((path) => openSync(path, 'r'));
  const devices: ByteSource[] = fds.map((fd) => fileSource(fd, fstatSync(fd).size));
  const image = openErofs(memorySource(readFileSync(metaPath)), devices);
  return {
    image,
    close() {
      for (const fd of fds) closeSync(fd);
    },
  };
}

/**
 * Where erofs-utils are: named by the environment, brought by the bootstrap, or installed. Undefined when
 * nowhere.
 */
export function oracle(program: 'fsck.erofs' | 'mkfs.erofs'): string | undefined {
  const fromBootstrap = join(import.meta.dirname, '../../.cache/oracle/bin');
  const places = [
    process.env.DSEC_EROFS_UTILS,
    fromBootstrap,
    ...(process.env.PATH ?? '').split(delimiter),
  ];
  return places
    .filter((place) => place !== undefined && place !== '')
    .map((place) => join(place as string, program))
    .find((path) => existsSync(path));
}

/** What `fsck.erofs` has to say against an image: empty when it is clean. */
export function fsck(program: string, metaPath: string, blobPaths: readonly string[]): string {
  const devices = blobPaths.map((path) => `--device=${path}`);
  const { status, stdout, stderr } = spawnSync(program, ['-d3', ...devices, metaPath], {
    encoding: 'utf8',
  });
  const complaints = (stdout + stderr).split('\n').filter((line) => /<[EW]>/.test(line));
  return status === 0 && complaints.length === 0 ? '' : `${status}: ${complaints.join('; ')}`;
}
