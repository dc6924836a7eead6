import {
  alignUp,
  BLOCK_BITS,
  CHUNK_FORMAT_BITS,
  CHUNK_FORMAT_INDEXES,
  CHUNK_INDEX,
  CHUNK_INDEX_BYTES,
  LAYOUT_CHUNKED,
  LAYOUT_INLINE,
  NULL_BLOCK,
  SYMLINK_BYTES_MAX,
} from './format.ts';
import { type ByteSource, bytesAt, damaged, type ErofsImage } from './image.ts';
import type { ImageInode } from './image-inode.ts';
import { BLOCK_BYTES, type ByteString } from './model.ts';

/** A run of a file's content. Device 0 is the image itself. */
export interface Extent {
  /** Position in the file. */
  readonly offset: number;
  readonly length: number;
  readonly deviceId: number;
  /** Position on the device; undefined for a hole. */
  readonly start: number | undefined;
}

export type ContentPart =
  | { readonly kind: 'data'; readonly bytes: Buffer }
  | { readonly kind: 'hole'; readonly length: number };

const PART_BYTES_MAX = 1024 * 1024;
const CHUNK_POINTER_BYTES = 4;

/** Where an inode's data behind its header begins: inline data, or chunk indexes once aligned. */
export function tailOffset(inode: ImageInode): number {
  return inode.offset + inode.inodeBytes + inode.xattrBytes;
}

/** Where the content of a file, directory or symlink lies, in order. */
export function* readExtents(image: ErofsImage, inode: ImageInode): Generator<Extent> {
  if (inode.layout === LAYOUT_CHUNKED) {
    yield* readChunks(image, inode);
    return;
  }
  const { sizeBytes } = inode;
  const inlineBytes = inode.layout === LAYOUT_INLINE ? sizeBytes % BLOCK_BYTES : 0;
  const plainBytes = sizeBytes - inlineBytes;
  if (plainBytes > 0) {
    yield { offset: 0, length: plainBytes, deviceId: 0, start: inode.union * BLOCK_BYTES };
  }
  if (inlineBytes > 0) {
    const start = tailOffset(inode);
    if ((start % BLOCK_BYTES) + inlineBytes > BLOCK_BYTES) {
      throw damaged(`has inline data (nid ${inode.nid}) that crosses a block`);
    }
    yield { offset: plainBytes, length: inlineBytes, deviceId: 0, start };
  }
}

function* readChunks(image: ErofsImage, inode: ImageInode): Generator<Extent> {
  const { sizeBytes, nid } = inode;
  const format = inode.union;
  if ((format & ~(CHUNK_FORMAT_BITS | CHUNK_FORMAT_INDEXES)) !== 0) {
    throw damaged(`has a file (nid ${nid}) of chunk format ${format}`);
  }
  const indexed = (format & CHUNK_FORMAT_INDEXES) !== 0;
  const chunkBytes = 2 ** (BLOCK_BITS + (format & CHUNK_FORMAT_BITS));
  const width = indexed ? CHUNK_INDEX_BYTES : CHUNK_POINTER_BYTES;
  const tableStart = alignUp(tailOffset(inode), width);
  const count = Math.ceil(sizeBytes / chunkBytes);
  if (!(tableStart + count * width <= image.meta.sizeBytes)) {
    throw damaged(`has a file (nid ${nid}) with more chunks than the image can name`);
  }
  const batch = Math.floor(PART_BYTES_MAX / width);
  for (let first = 0; first < count; first += batch) {
    const chunks = Math.min(batch, count - first);
    const table = bytesAt(image.meta, tableStart + first * width, chunks * width);
    for (let index = 0; index < chunks; index += 1) {
      const at = index * width;
      const block = table.readUInt32LE(at + (indexed ? CHUNK_INDEX.block : 0));
      const offset = (first + index) * chunkBytes;
      yield {
        offset,
        length: Math.min(chunkBytes, sizeBytes - offset),
        deviceId: indexed ? table.readUInt16LE(at + CHUNK_INDEX.device) : 0,
        start: block === NULL_BLOCK ? undefined : block * BLOCK_BYTES,
      };
    }
  }
}

/** The content of a regular file in order, in parts of at most 1 MiB; holes in one part each. */
export function* readContent(image: ErofsImage, inode: ImageInode): Generator<ContentPart> {
  for (const { length, deviceId, start } of readExtents(image, inode)) {
    if (start === undefined) {
      yield { kind: 'hole', length };
      continue;
    }
    const source = deviceOf(image, deviceId);
    for (let done = 0; done < length; done += PART_BYTES_MAX) {
      const bytes = bytesAt(source, start + done, Math.min(PART_BYTES_MAX, length - done));
      yield { kind: 'data', bytes };
    }
  }
}

function deviceOf(image: ErofsImage, deviceId: number): ByteSource {
  const source = deviceId === 0 ? image.meta : image.devices[deviceId - 1];
  if (source === undefined) throw damaged(`refers to device ${deviceId}, which is not there`);
  return source;
}

export function readLink(image: ErofsImage, inode: ImageInode): ByteString {
  const { sizeBytes, nid } = inode;
  if (inode.kind !== 'symlink' || sizeBytes < 1 || sizeBytes > SYMLINK_BYTES_MAX) {
    throw damaged(`has a symlink (nid ${nid}) of ${sizeBytes} bytes`);
  }
  const target = readWhole(image, inode).toString('latin1');
  if (target.includes('\0')) throw damaged(`has a symlink (nid ${nid}) with a NUL`);
  return target;
}

/** Directory blocks and link targets lie in the image itself, in one or two pieces. */
function readWhole(image: ErofsImage, inode: ImageInode): Buffer {
  const parts = Array.from(readExtents(image, inode), ({ length, start }) =>
    bytesAt(image.meta, start ?? 0, length),
  );
  return Buffer.concat(parts);
}
