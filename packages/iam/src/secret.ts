/** The secret of an API key: `dsec_` and 32 random bytes in base64url. Only its hash is ever stored. */
import { createHash } from 'node:crypto';
import type { Random } from '@dsec/std';

export const SECRET = /^dsec_[A-Za-z0-9_-]{43}$/;
const SECRET_BYTES = 32;
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const ID_LENGTH = 16;

export function newSecret(random: Random): string {
  return `dsec_${Buffer.from(random.bytes(SECRET_BYTES)).toString('base64url')}`;
}

/**
 * sha256 in hex. A plain hash is enough, since what is hashed has 256 random bits: there is no guessing, and
 * each request pays for it.
 */
export function hashOfSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** The id of a key is a part of its hash, so that the secret leads to the record by one read. */
export function keyIdOfHash(hash: string): string {
  let id = 'ke-';
  for (const byte of Buffer.from(hash, 'hex').subarray(0, ID_LENGTH)) id += BASE32[byte & 31];
  return id;
}

export const keyIdOf = (secret: string): string => keyIdOfHash(hashOfSecret(secret));
