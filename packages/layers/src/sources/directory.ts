import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import type { ByteString, FileSink, InodeAttributes, LayerBuilder } from '@dsec/erofs';
import {
  type ByteRange,
  dataRanges,
  descriptorPath,
  errnoOf,
  getXattr,
  listXattrs,
  O_PATH,
  openAt,
  readLink,
} from '@dsec/linux';
import { DsecError, MIB } from '@dsec/std';
import { changed, type WalkedEntry, walkDirectory } from './directory-walk.ts';
import type { ImportLimits } from './limits.ts';
import { memberPath, shown } from './member-path.ts';
import { type OverlayXattrs, takeOverlayMarks } from './overlay-upper.ts';
import type { Pace } from './pace.ts';

const READ_BYTES = MIB;
const MODE_BITS = 0o7777;
const STAT_BLOCK_BYTES = 512;
const NANOSECONDS = 1_000_000_000n;

export interface DirectoryOptions {
  /**
   * Read overlayfs's whiteouts and opaque marks, kept in these attributes. Default: they are nothing special.
   */
  readonly overlayUpper?: OverlayXattrs;
  /** Leave out what is mounted below. Default true. */
  readonly oneFileSystem?: boolean;
  /** Paths below the directory to leave out with everything in them. */
  readonly exclude?: readonly ByteString[];
}

interface Context {
  readonly limits: ImportLimits;
  readonly pace: Pace;
}

/**
 * Gives every entry of a host directory to the builder, sorted, with hard links, holes, attributes and ACLs;
 * sockets and devices included. No link is followed; a final one in `path` itself is. What a file's size or
 * times say must be the same after it was read, else `conflict`. Throws `import-invalid`, `import-limit`,
 * `conflict`, `cancelled`, `permission-denied`. Run as root, or entries of others are missing attributes or
 * refused.
 */
export async function importDirectory(
  path: string,
  builder: LayerBuilder,
  options: DirectoryOptions,
  context: Context,
): Promise<void> {
  const { overlayUpper, oneFileSystem = true, exclude = [] } = options;
  const excluded = new Set(exclude.map((each) => memberPath(each, context.limits.pathBytesMax)));
  const { entriesMax } = context.limits;
  const importEntry = createEntryImporter(builder, overlayUpper, context.pace);
  const rootFd = openAt(path, { flags: O_PATH | constants.O_DIRECTORY });
  try {
    for (const entry of walkDirectory(rootFd, { excluded, oneFileSystem, entriesMax })) {
      const turn = context.pace.due();
      if (turn !== undefined) await turn;
      await importEntry(entry);
    }
  } finally {
    closeSync(rootFd);
  }
}

function createEntryImporter(
  builder: LayerBuilder,
  overlayUpper: OverlayXattrs | undefined,
  pace: Pace,
): (entry: WalkedEntry) => Promise<void> {
  /** First path of every inode with several names, by device and inode number. */
  const linked = new Map<string, ByteString>();
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES);

  return async (entry) => {
    const { path, fd, stat } = entry;
    if (isWhiteout(stat)) return builder.whiteout(path);
    if (stat.nlink > 1n && !stat.isDirectory()) {
      const inode = `${stat.dev}:${stat.ino}`;
      const first = linked.get(inode);
      if (first !== undefined) return builder.hardLink(path, first);
      linked.set(inode, path);
    }
    const xattrs = readXattrs(fd);
    const marks = overlayUpper && takeOverlayMarks(path, xattrs, overlayUpper);
    const attributes = attributesOf(stat, xattrs);
    if (stat.isDirectory()) {
      builder.directory(path, attributes);
      if (marks?.opaque === true) builder.opaque(path);
    } else if (stat.isFile()) {
      await importFile(entry, builder.file(path, attributes, sizeOf(entry)), buffer, pace);
    } else if (stat.isSymbolicLink()) {
      builder.symlink(path, { ...attributes, mode: 0o777 }, readLink(fd));
    } else if (stat.isFIFO()) {
      builder.fifo(path, attributes);
    } else if (stat.isSocket()) {
      builder.socket(path, attributes);
    } else {
      const kind = stat.isCharacterDevice() ? 'char' : 'block';
      builder.device(path, attributes, { kind, ...deviceOf(stat.rdev) });
    }
  };
}

/** Overlayfs takes a character device 0:0 for a whiteout wherever it lies, so that is what it is. */
function isWhiteout(stat: BigIntStats): boolean {
  return stat.isCharacterDevice() && stat.rdev === 0n;
}

/** The two halves of a device number as the C library packs them. */
function deviceOf(rdev: bigint): { major: number; minor: number } {
  const major = ((rdev >> 8n) & 0xfffn) | ((rdev >> 32n) & 0xffff_f000n);
  const minor = (rdev & 0xffn) | ((rdev >> 12n) & 0xffff_ff00n);
  return { major: Number(major), minor: Number(minor) };
}

function readXattrs(fd: number): Map<ByteString, Uint8Array> {
  const xattrs = new Map<ByteString, Uint8Array>();
  for (const name of xattrNames(fd)) {
    const value = getXattr(fd, name);
    if (value !== undefined) xattrs.set(name, value);
  }
  return xattrs;
}

function xattrNames(fd: number): readonly ByteString[] {
  try {
    return listXattrs(fd);
  } catch (thrown) {
    if (errnoOf(thrown) === 'EOPNOTSUPP') return [];
    throw thrown;
  }
}

function attributesOf(
  stat: BigIntStats,
  xattrs: ReadonlyMap<ByteString, Uint8Array>,
): InodeAttributes {
  const nsec = ((stat.mtimeNs % NANOSECONDS) + NANOSECONDS) % NANOSECONDS;
  return {
    mode: Number(stat.mode) & MODE_BITS,
    uid: Number(stat.uid),
    gid: Number(stat.gid),
    mtimeSec: Number((stat.mtimeNs - nsec) / NANOSECONDS),
    mtimeNsec: Number(nsec),
    xattrs,
  };
}

function sizeOf({ path, stat }: WalkedEntry): number {
  const size = Number(stat.size);
  if (!Number.isSafeInteger(size)) {
    throw new DsecError('import-limit', `${shown(path)} is larger than 2^53 bytes`);
  }
  return size;
}

async function importFile(
  entry: WalkedEntry,
  sink: FileSink,
  buffer: Buffer,
  pace: Pace,
): Promise<void> {
  const size = Number(entry.stat.size);
  if (size === 0) return sink.end();
  // Through /proc, since an O_PATH descriptor cannot be read: the same inode, whatever its name means by now.
  const fd = openSync(descriptorPath(entry.fd), constants.O_RDONLY);
  try {
    let at = 0;
    for (const { start, end } of rangesOf(fd, entry.stat)) {
      if (start > at) sink.hole(start - at);
      for (at = start; at < end; ) {
        const got = readSync(fd, buffer, 0, Math.min(buffer.length, end - at), at);
        if (got === 0) throw changed(entry.path);
        sink.write(buffer.subarray(0, got));
        pace.count(got);
        at += got;
        const turn = pace.due();
        if (turn !== undefined) await turn;
      }
    }
    if (size > at) sink.hole(size - at);
    checkUnchanged(entry, fstatSync(fd, { bigint: true }));
  } finally {
    closeSync(fd);
  }
  sink.end();
}

/** Where the content is. Only a file with fewer blocks than its size needs can have holes. */
function rangesOf(fd: number, stat: BigIntStats): Iterable<ByteRange> {
  const size = Number(stat.size);
  if (Number(stat.blocks) * STAT_BLOCK_BYTES >= size) return [{ start: 0, end: size }];
  return dataRanges(fd, size);
}

function checkUnchanged({ path, stat }: WalkedEntry, after: BigIntStats): void {
  const same =
    after.size === stat.size && after.mtimeNs === stat.mtimeNs && after.ctimeNs === stat.ctimeNs;
  if (!same) throw changed(path);
}
