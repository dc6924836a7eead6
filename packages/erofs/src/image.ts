/**
 * Reads uncompressed EROFS images of 4 KiB blocks: ours, and those of mkfs.erofs that are to be encoded
 * again. The bytes are not trusted: whatever they hold, a call reads only inside its source, takes time and
 * memory in proportion to what it returns, and throws `layer-invalid` for everything that is out of place.
 */
import { readSync } from 'node:fs';
import { asDsecError, DsecError } from '@dsec/std';
import {
  BLOCK_BITS,
  DEVICE_SLOT,
  DEVICE_SLOT_BYTES,
  DEVICE_TAG_BYTES,
  SUPER,
  SUPER_BYTES,
  SUPER_MAGIC,
  SUPER_OFFSET,
} from './format.ts';
import { BLOCK_BYTES, type ByteString } from './model.ts';

/** Random access to bytes. `read` gives exactly `length` bytes; the caller stays within `sizeBytes`. */
export interface ByteSource {
  readonly sizeBytes: number;
  read(offset: number, length: number): Uint8Array;
}

export interface ImageDevice {
  /** What the image says the device holds: of our layers, 64 hex digits of the blob's digest. */
  readonly tag: ByteString;
  readonly blocks: number;
  readonly mappedBlock: number;
}

export interface SuperBlock {
  readonly featureCompat: number;
  readonly featureIncompat: number;
  readonly rootNid: number;
  readonly inodes: number;
  /** Time of compact inodes. */
  readonly epochSec: number;
  readonly epochNsec: number;
  readonly blocks: number;
  readonly metaBlock: number;
  readonly xattrBlock: number;
  readonly devices: readonly ImageDevice[];
}

export interface ErofsImage {
  readonly superBlock: SuperBlock;
  readonly meta: ByteSource;
  /** The blobs in device-table order; empty when only metadata is wanted. */
  readonly devices: readonly ByteSource[];
}

/** Bounds the device table: more would not fit into the options of a mount. */
export const DEVICES_MAX = 256;

const COMPAT_SHARED_XATTR_IN_METABOX = 8;
const INCOMPAT_ZERO_PADDING = 1;
const INCOMPAT_CHUNKED_FILE = 4;
const INCOMPAT_DEVICE_TABLE = 8;
/** Features that change nothing about uncompressed files, or that are read here. */
const INCOMPAT_KNOWN = INCOMPAT_ZERO_PADDING | INCOMPAT_CHUNKED_FILE | INCOMPAT_DEVICE_TABLE;

/** Opens an image. `devices` are the blobs that its device table names, in that order. */
export function openErofs(meta: ByteSource, devices: readonly ByteSource[] = []): ErofsImage {
  if (meta.sizeBytes < BLOCK_BYTES) throw damaged('is shorter than one block');
  const block = bytesAt(meta, 0, BLOCK_BYTES).subarray(SUPER_OFFSET, SUPER_OFFSET + SUPER_BYTES);
  if (block.readUInt32LE(SUPER.magic) !== SUPER_MAGIC) throw damaged('has no EROFS superblock');
  if (block[SUPER.blockBits] !== BLOCK_BITS || block[SUPER.directoryBlockBits] !== 0) {
    throw damaged('has blocks of another size than 4 KiB');
  }
  const featureCompat = block.readUInt32LE(SUPER.featureCompat);
  const featureIncompat = block.readUInt32LE(SUPER.featureIncompat);
  const unknown = featureIncompat & ~INCOMPAT_KNOWN;
  if (unknown !== 0 || (featureCompat & COMPAT_SHARED_XATTR_IN_METABOX) !== 0) {
    throw damaged(`uses features (${featureCompat}, ${featureIncompat}) that are not supported`);
  }
  const blocks = block.readUInt32LE(SUPER.blocks);
  if (blocks * BLOCK_BYTES > meta.sizeBytes) throw damaged('is cut short');
  const hasDevices = (featureIncompat & INCOMPAT_DEVICE_TABLE) !== 0;
  const superBlock: SuperBlock = {
    featureCompat,
    featureIncompat,
    rootNid: block.readUInt16LE(SUPER.rootNid),
    inodes: uint64At(block, SUPER.inodes),
    epochSec: uint64At(block, SUPER.epoch),
    epochNsec: block.readUInt32LE(SUPER.epochNsec),
    blocks,
    metaBlock: block.readUInt32LE(SUPER.metaBlock),
    xattrBlock: block.readUInt32LE(SUPER.xattrBlock),
    devices: hasDevices ? readDevices(meta, block) : [],
  };
  return { superBlock, meta, devices };
}

function readDevices(meta: ByteSource, block: Buffer): ImageDevice[] {
  const count = block.readUInt16LE(SUPER.extraDevices);
  if (count > DEVICES_MAX) throw damaged(`has ${count} devices, more than ${DEVICES_MAX}`);
  const start = block.readUInt16LE(SUPER.deviceTableSlot) * DEVICE_SLOT_BYTES;
  const table = bytesAt(meta, start, count * DEVICE_SLOT_BYTES);
  return Array.from({ length: count }, (_, index) => {
    const slot = table.subarray(index * DEVICE_SLOT_BYTES, (index + 1) * DEVICE_SLOT_BYTES);
    return {
      tag: slot.toString('latin1', DEVICE_SLOT.tag, DEVICE_TAG_BYTES).replace(/\0+$/, ''),
      blocks: slot.readUInt32LE(DEVICE_SLOT.blocks),
      mappedBlock: slot.readUInt32LE(DEVICE_SLOT.mappedBlock),
    };
  });
}

export function damaged(problem: string): DsecError {
  return new DsecError('layer-invalid', `EROFS image ${problem}`);
}

/** Reads, and throws `layer-invalid` when the range is not wholly inside the source. */
export function bytesAt(source: ByteSource, offset: number, length: number): Buffer {
  if (!(offset >= 0 && length >= 0 && offset + length <= source.sizeBytes)) {
    throw damaged(`refers to bytes ${offset} to ${offset + length}, which it does not have`);
  }
  const bytes = source.read(offset, length);
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, length);
}

/** Numbers past 2^53 become Infinity, so that every bound refuses them. */
export function uint64At(bytes: Buffer, offset: number): number {
  const high = bytes.readUInt32LE(offset + 4);
  return high < 2 ** 21 ? high * 2 ** 32 + bytes.readUInt32LE(offset) : Number.POSITIVE_INFINITY;
}

export function memorySource(bytes: Uint8Array): ByteSource {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return {
    sizeBytes: buffer.length,
    read: (offset, length) => buffer.subarray(offset, offset + length),
  };
}

/** Reads from a descriptor, which stays the caller's. Throws `data-loss` when the file has become shorter. */
export function fileSource(fd: number, sizeBytes: number): ByteSource {
  return {
    sizeBytes,
    read(offset, length) {
      const bytes = Buffer.allocUnsafe(length);
      for (let done = 0; done < length; ) {
        const count = readOnce(fd, bytes, done, offset + done);
        if (count === 0) throw new DsecError('data-loss', 'a layer file is shorter than it was');
        done += count;
      }
      return bytes;
    },
  };
}

function readOnce(fd: number, into: Buffer, start: number, position: number): number {
  try {
    return readSync(fd, into, start, into.length - start, position);
  } catch (thrown) {
    throw asDsecError(thrown);
  }
}
