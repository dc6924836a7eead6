/** Changes to images that keep the outer seals right, so that tests reach what lies behind them. */
import { createHash } from 'node:crypto';
import { superChecksum } from '../../src/encode.ts';
import { BLOCK_BYTES } from '../../src/index.ts';

const UUID = 1024 + 48;
const CHECKSUM = 1024 + 4;

/** Copies, changes, and computes uuid and checksum again. */
export function patched(meta: Uint8Array, change: (bytes: Buffer) => void): Buffer {
  const bytes = Buffer.from(meta);
  change(bytes);
  if (bytes.length >= BLOCK_BYTES) reseal(bytes);
  return bytes;
}

export function reseal(bytes: Buffer): void {
  bytes.fill(0, UUID, UUID + 16);
  bytes.writeUInt32LE(0, CHECKSUM);
  createHash('sha256').update(bytes).digest().copy(bytes, UUID, 0, 16);
  bytes.writeUInt32LE(superChecksum(bytes), CHECKSUM);
}
