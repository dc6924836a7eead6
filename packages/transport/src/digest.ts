import { createHash } from 'node:crypto';
import { type Digest, digestOfHex } from '@dsec/std';

/** SHA-256 of bytes, or of the UTF-8 form of a string. */
export function sha256Of(data: Uint8Array | string): Digest {
  return digestOfHex(createHash('sha256').update(data).digest('hex'));
}
