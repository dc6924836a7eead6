import { DsecError } from '@dsec/std';

/**
 * Nonces that were used, each remembered until its own expiry. Full, it refuses instead of
 * forgetting, because a nonce that is forgotten early can be used again.
 */
export interface NonceMemory {
  /** Notes a nonce. False when it was used before. Throws `overloaded` when there is no room. */
  use(nonce: string, expiresMs: number, nowMs: number): boolean;
  /**
   * The latest expiry among the nonces forgotten so far. Whatever expires no later may have been
   * used: a clock that is set back must not make it valid again.
   */
  readonly forgottenThroughMs: number;
  readonly size: number;
}

const BUCKET_MS = 1000;

export function createNonceMemory(capacity: number): NonceMemory {
  /** By the second in which they expire, so that forgetting costs nothing per nonce. */
  const buckets = new Map<number, Set<string>>();
  let size = 0;
  let forgottenThroughMs = 0;

  const forgetExpired = (nowMs: number) => {
    for (const [bucket, nonces] of buckets) {
      const endMs = (bucket + 1) * BUCKET_MS;
      if (endMs > nowMs) continue;
      buckets.delete(bucket);
      size -= nonces.size;
      forgottenThroughMs = Math.max(forgottenThroughMs, endMs);
    }
  };

  return {
    use(nonce, expiresMs, nowMs) {
      forgetExpired(nowMs);
      const bucket = Math.floor(expiresMs / BUCKET_MS);
      let nonces = buckets.get(bucket);
      if (nonces?.has(nonce)) return false;
      if (size >= capacity) {
        throw new DsecError('overloaded', `${capacity} tickets are remembered already`);
      }
      if (nonces === undefined) {
        nonces = new Set();
        buckets.set(bucket, nonces);
      }
      nonces.add(nonce);
      size += 1;
      return true;
    },
    get forgottenThroughMs() {
      return forgottenThroughMs;
    },
    get size() {
      return size;
    },
  };
}
