/**
 * The digest of a tree's content, the same for every encoding of it. Format, version 1: sha256 over the text
 * `dsec-tree-1\n` and one record for every name, parents before their children, siblings in byte order.
 * Numbers are
 * little-endian.
 *
 *   name     u16 length, bytes (empty for the root)
 *   kind     u8: 1 file, 2 directory, 3 char, 4 block, 5 fifo, 6 socket, 7 symlink, 8 a further name of an
 *            inode
 *   8:       u64 position of the record that first named the inode; nothing else follows
 *   else     u16 mode, u32 uid, u32 gid, i64 mtime seconds, u32 nanoseconds,
 *            u32 number of xattrs, each: u16 name length, name, u32 value length, value (sorted by name)
 *   1:       u64 size, then runs of 64 KiB chunks as long as possible: u8 0, u32 count for zeros and holes;
 *            u8 1, u32 count, the sha256 of each (a short last chunk padded with zeros to a multiple of 4
 *            KiB)
 *   3, 4:    u32 major, u32 minor
 *   7:       u32 length, target
 *   2:       the records of its children, then u16 0xffff
 *
 * Whiteouts are char 0:0 with all attributes zero; opaque is the xattr `trusted.overlay.opaque`.
 */
import { createHash } from 'node:crypto';
import { type Digest, digestOfHex } from '@dsec/std';
import { blocksOf, CHUNK_BLOCKS, chunksOf, decodeDevice, rowOf } from './format.ts';
import { type ByteString, CHUNK_BYTES } from './model.ts';
import type { DirectoryInode, FileInode, Inode } from './tree.ts';

const VERSION = 'dsec-tree-1\n';
const SAME_INODE = 8;
const DIRECTORY_END = 0xffff;

/** The chunks of a tree by their position in its chunk list. */
export interface ChunkDigests {
  isHole(position: number): boolean;
  /** `blocks` is the length of the chunk, padded. The result is used before the next call. */
  digest(position: number, blocks: number): Uint8Array;
}

interface Frame {
  readonly directory: DirectoryInode;
  readonly names: readonly ByteString[];
  next: number;
}

/**
 * Hashes a tree that `inodesInOrder` has sorted, in one pass, with memory for its depth and its hard links.
 */
export function hashTree(root: DirectoryInode, chunks: ChunkDigests): Digest {
  const out = createHashWriter();
  const firstRecord = new Map<Inode, number>();
  let records = 0;

  const writeRecord = (name: ByteString, inode: Inode) => {
    out.text(name, 2);
    const first = firstRecord.get(inode);
    if (first !== undefined) {
      out.uint(SAME_INODE, 1);
      out.uint(first, 8);
    } else {
      if (inode.names > 1) firstRecord.set(inode, records);
      out.uint(rowOf(inode.kind).direntType, 1);
      writeHead(out, inode);
      writeBody(out, inode, chunks);
    }
    records += 1;
  };

  out.raw(Buffer.from(VERSION));
  writeRecord('', root);
  const stack: Frame[] = [{ directory: root, names: root.order, next: 0 }];
  for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
    const name = frame.names[frame.next];
    if (name === undefined) {
      out.uint(DIRECTORY_END, 2);
      stack.pop();
      continue;
    }
    frame.next += 1;
    const inode = frame.directory.children.get(name)?.inode as Inode;
    writeRecord(name, inode);
    if (inode.kind === 'directory') {
      stack.push({ directory: inode, names: inode.order, next: 0 });
    }
  }
  return out.finish();
}

function writeHead(out: HashWriter, inode: Inode): void {
  out.uint(inode.mode, 2);
  out.uint(inode.uid, 4);
  out.uint(inode.gid, 4);
  out.int64(inode.mtimeSec);
  out.uint(inode.mtimeNsec, 4);
  out.uint(inode.xattrs.list.length, 4);
  for (const { name, value } of inode.xattrs.list) {
    out.text(name, 2);
    out.uint(value.length, 4);
    out.raw(value);
  }
}

function writeBody(out: HashWriter, inode: Inode, chunks: ChunkDigests): void {
  if (inode.kind === 'file') {
    out.uint(inode.sizeBytes, 8);
    writeChunks(out, inode, chunks);
  } else if (inode.kind === 'symlink') {
    out.text(inode.target, 4);
  } else if (inode.kind === 'char' || inode.kind === 'block') {
    const { major, minor } = decodeDevice(inode.device);
    out.uint(major, 4);
    out.uint(minor, 4);
  }
}

function writeChunks(out: HashWriter, file: FileInode, chunks: ChunkDigests): void {
  const end = file.chunkStart + chunksOf(file.sizeBytes);
  const lastBlocks = blocksOf(file.sizeBytes % CHUNK_BYTES) || CHUNK_BLOCKS;
  for (let start = file.chunkStart; start < end; ) {
    const isHole = chunks.isHole(start);
    let stop = start + 1;
    while (stop < end && chunks.isHole(stop) === isHole) stop += 1;
    out.uint(isHole ? 0 : 1, 1);
    out.uint(stop - start, 4);
    for (let position = start; !isHole && position < stop; position += 1) {
      out.raw(chunks.digest(position, position === end - 1 ? lastBlocks : CHUNK_BLOCKS));
    }
    start = stop;
  }
}

interface HashWriter {
  /** Little-endian, `width` bytes. */
  uint(value: number, width: 1 | 2 | 4 | 8): void;
  int64(value: number): void;
  /** A length of `width` bytes, then the bytes. */
  text(value: ByteString, width: 2 | 4): void;
  raw(value: Uint8Array): void;
  finish(): Digest;
}

function createHashWriter(): HashWriter {
  const hash = createHash('sha256');
  // Longer than any name, target or xattr value.
  const buffer = Buffer.alloc(64 * 1024);
  let used = 0;

  const reserve = (bytes: number) => {
    if (used + bytes <= buffer.length) return;
    hash.update(buffer.subarray(0, used));
    used = 0;
  };
  const uint = (value: number, width: number) => {
    reserve(width);
    if (width === 8) {
      buffer.writeBigUInt64LE(BigInt(value), used);
    } else {
      buffer.writeUIntLE(value, used, width);
    }
    used += width;
  };
  return {
    uint,
    int64(value) {
      reserve(8);
      used = buffer.writeBigInt64LE(BigInt(value), used);
    },
    text(value, width) {
      uint(value.length, width);
      reserve(value.length);
      used += buffer.write(value, used, 'latin1');
    },
    raw(value) {
      reserve(value.length);
      buffer.set(value, used);
      used += value.length;
    },
    finish() {
      hash.update(buffer.subarray(0, used));
      return digestOfHex(hash.digest('hex'));
    },
  };
}
