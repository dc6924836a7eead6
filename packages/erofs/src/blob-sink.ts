import { writeSync } from 'node:fs';
import { asDsecError } from '@dsec/std';
import { BLOCK_BYTES, type BlobSink } from './model.ts';

export interface FileBlobSink extends BlobSink {
  /** Length of the file: everything appended, discarded parts included. */
  readonly bytesWritten: number;
}

/** Frees a part of a file, as fallocate(2) does with PUNCH_HOLE and KEEP_SIZE. */
export type PunchHole = (fd: number, offsetBytes: number, lengthBytes: number) => void;

/**
 * Writes a blob to a regular file from its start. The descriptor stays the caller's. `append` writes through:
 * the builder hands over megabytes at a time. Without `punchHole` discarded parts are overwritten with zeros,
 * so that removed content is gone, but keep their space. Throws `storage-full` when the disk is.
 */
export function createFileBlobSink(fd: number, punchHole: PunchHole = writeZeros): FileBlobSink {
  let position = 0;
  return {
    get bytesWritten() {
      return position;
    },
    append(bytes) {
      writeAll(fd, bytes, position);
      position += bytes.length;
    },
    discard(startBlock, blocks) {
      punchHole(fd, startBlock * BLOCK_BYTES, blocks * BLOCK_BYTES);
    },
    flush() {},
  };
}

function writeZeros(fd: number, offsetBytes: number, lengthBytes: number): void {
  writeAll(fd, Buffer.alloc(lengthBytes), offsetBytes);
}

function writeAll(fd: number, bytes: Uint8Array, position: number): void {
  try {
    for (let done = 0; done < bytes.length; ) {
      done += writeSync(fd, bytes, done, bytes.length - done, position + done);
    }
  } catch (thrown) {
    throw asDsecError(thrown);
  }
}
