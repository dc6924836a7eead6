const POLYNOMIAL_REFLECTED = 0x82f63b78;

const table = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) {
    crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL_REFLECTED : crc >>> 1;
  }
  return crc;
});

/** CRC-32C as the kernel computes it for a superblock: starts from `seed`, without a final inversion. */
export function crc32c(bytes: Uint8Array, seed: number): number {
  let crc = seed;
  for (const byte of bytes) crc = (table[(crc ^ byte) & 0xff] as number) ^ (crc >>> 8);
  return crc >>> 0;
}
