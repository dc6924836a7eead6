import { DIRENT, DIRENT_BYTES, type FileKind, KIND_ROWS, NAME_BYTES_MAX } from './format.ts';
import { bytesAt, damaged, type ErofsImage, uint64At } from './image.ts';
import { readExtents } from './image-content.ts';
import type { ImageInode } from './image-inode.ts';
import { BLOCK_BYTES, type ByteString } from './model.ts';

export interface ImageEntry {
  readonly name: ByteString;
  readonly nid: number;
  /** As the directory says; the inode has the last word. */
  readonly kind: FileKind;
}

const kindOfDirentType = new Map(KIND_ROWS.map((row) => [row.direntType, row.kind]));
/** No path component may hold either. */
const BAD_IN_NAME = /[\0/]/;

/** All entries in byte order, `.` and `..` included. Throws unless the names are distinct and sorted. */
export function* readDirectory(image: ErofsImage, inode: ImageInode): Generator<ImageEntry> {
  for (const { entries } of readDirectoryBlocks(image, inode)) yield* entries;
}

/** The entries block by block. A block may be cut short by the end of the directory. */
export function* readDirectoryBlocks(
  image: ErofsImage,
  inode: ImageInode,
): Generator<{ readonly block: Buffer; readonly entries: readonly ImageEntry[] }> {
  if (inode.kind !== 'directory') throw damaged('has entries in what is no directory');
  let before = '';
  for (const { start, length } of readExtents(image, inode)) {
    for (let done = 0; done < length; done += BLOCK_BYTES) {
      const blockBytes = Math.min(BLOCK_BYTES, length - done);
      const block = bytesAt(image.meta, (start ?? 0) + done, blockBytes);
      const entries = readDirectoryBlock(block);
      for (const { name } of entries) {
        if (name <= before) throw damaged('has a directory that is not sorted');
        before = name;
      }
      yield { block, entries };
    }
  }
}

/** The entries of one block. The last name ends at the first NUL or with the block. */
function readDirectoryBlock(block: Buffer): ImageEntry[] {
  if (block.length < DIRENT_BYTES) throw damaged('has a directory block without entries');
  const namesStart = block.readUInt16LE(DIRENT.nameOffset);
  const count = namesStart / DIRENT_BYTES;
  if (!Number.isInteger(count) || count < 1 || namesStart > block.length) {
    throw damaged('has a directory block with a bad first entry');
  }
  const entries: ImageEntry[] = [];
  for (let index = 0; index < count; index += 1) {
    const at = index * DIRENT_BYTES;
    const start = block.readUInt16LE(at + DIRENT.nameOffset);
    const isLast = index === count - 1;
    const end = isLast
      ? endOfLastName(block, start)
      : block.readUInt16LE(at + DIRENT_BYTES + DIRENT.nameOffset);
    if (start < namesStart || end > block.length || end <= start || end - start > NAME_BYTES_MAX) {
      throw damaged('has a directory entry with a bad name');
    }
    const name = block.toString('latin1', start, end);
    const kind = kindOfDirentType.get(block[at + DIRENT.fileType] ?? 0);
    if (BAD_IN_NAME.test(name) || kind === undefined) throw damaged('has a bad directory entry');
    entries.push({ name, nid: uint64At(block, at + DIRENT.nid), kind });
  }
  return entries;
}

function endOfLastName(block: Buffer, start: number): number {
  const nul = block.indexOf(0, start);
  return nul < 0 ? block.length : nul;
}
