import { createHash } from 'node:crypto';
import { type Digest, digestOfHex } from '@dsec/std';
import { assertZero } from './claims.ts';
import { type LayerDevice, superChecksum } from './encode.ts';
import {
  BLOCKS_MAX,
  blocksOf,
  COMPAT_CHECKSUM,
  COMPAT_MTIME,
  DEVICE_SLOT,
  DEVICE_SLOT_BYTES,
  DEVICE_TABLE_SLOT,
  INCOMPAT_CHUNKED_FILE,
  INCOMPAT_DEVICE_TABLE,
  SUPER,
  SUPER_BYTES,
  SUPER_OFFSET,
} from './format.ts';
import { damaged, type ErofsImage } from './image.ts';
import { BLOCK_BYTES } from './model.ts';

const TAG = /^[0-9a-f]{64}$/;

/** Where superblock and device table end. */
export function headEnd(deviceCount: number): number {
  return SUPER_OFFSET + SUPER_BYTES + deviceCount * DEVICE_SLOT_BYTES;
}

/**
 * Throws `layer-invalid` unless the superblock is exactly what our writer would have written over this
 * content.
 */
export function checkSuperBlock(bytes: Buffer, image: ErofsImage): void {
  const { superBlock } = image;
  const raw = bytes.subarray(SUPER_OFFSET, SUPER_OFFSET + SUPER_BYTES);
  const isOurs =
    superBlock.featureCompat === (COMPAT_CHECKSUM | COMPAT_MTIME) &&
    superBlock.featureIncompat === (INCOMPAT_CHUNKED_FILE | INCOMPAT_DEVICE_TABLE) &&
    superBlock.rootNid > 0 &&
    superBlock.blocks * BLOCK_BYTES === bytes.length &&
    superBlock.xattrBlock === blocksOf(headEnd(superBlock.devices.length)) &&
    superBlock.metaBlock >= superBlock.xattrBlock &&
    raw.readUInt16LE(SUPER.deviceTableSlot) === DEVICE_TABLE_SLOT;
  if (!isOurs) throw damaged('has a superblock that is not one of ours');

  const unused: readonly (readonly [start: number, end: number])[] = [
    [SUPER.extensionSlots, SUPER.rootNid],
    [SUPER.epoch, SUPER.blocks],
    [SUPER.volumeName, SUPER.featureIncompat],
    [SUPER.compressionAlgorithms, SUPER.extraDevices],
    [SUPER.directoryBlockBits, SUPER_BYTES],
  ];
  for (const [start, end] of unused) assertZero(raw, start, end);
  assertZero(bytes, 0, SUPER_OFFSET);

  if (raw.readUInt32LE(SUPER.checksum) !== superChecksum(bytes)) {
    throw damaged('has a superblock whose checksum does not match');
  }
  const uuid = raw.subarray(SUPER.uuid, SUPER.volumeName);
  if (!contentUuid(bytes).equals(uuid)) throw damaged('does not match its own uuid');
}

/** The uuid is the hash of the image without uuid and checksum. */
function contentUuid(bytes: Buffer): Buffer {
  const head = Buffer.from(bytes.subarray(0, BLOCK_BYTES));
  head.fill(0, SUPER_OFFSET + SUPER.checksum, SUPER_OFFSET + SUPER.featureCompat);
  head.fill(0, SUPER_OFFSET + SUPER.uuid, SUPER_OFFSET + SUPER.volumeName);
  const hash = createHash('sha256').update(head).update(bytes.subarray(BLOCK_BYTES));
  return hash.digest().subarray(0, 16);
}

/** Throws `layer-invalid` unless each device is a blob of its own that is as long as the table says. */
export function checkDevices(
  bytes: Buffer,
  image: ErofsImage,
  deviceBlocks: readonly number[] | undefined,
): LayerDevice[] {
  const { devices, blocks: metaBlocks } = image.superBlock;
  if (deviceBlocks !== undefined && deviceBlocks.length !== devices.length) {
    throw damaged(`names ${devices.length} devices, not ${deviceBlocks.length}`);
  }
  const seen = new Set<Digest>();
  let mappedBlock = metaBlocks;
  return devices.map((device, index) => {
    if (!TAG.test(device.tag)) throw damaged('has a device without a digest');
    const blobId = digestOfHex(device.tag);
    const { blocks } = device;
    const blocksThere = deviceBlocks?.[index] ?? blocks;
    const fits = blocks > 0 && blocks <= blocksThere && device.mappedBlock === mappedBlock;
    if (!fits || seen.has(blobId)) throw damaged(`has a bad entry for blob ${blobId}`);
    const slot = (DEVICE_TABLE_SLOT + index) * DEVICE_SLOT_BYTES;
    assertZero(bytes, slot + DEVICE_SLOT.rest, slot + DEVICE_SLOT_BYTES);
    seen.add(blobId);
    mappedBlock += blocks;
    if (mappedBlock > BLOCKS_MAX) throw damaged('has more blocks than can be named');
    return { blobId, blocks };
  });
}
