import { randomBytes, randomFillSync } from 'node:crypto';
import { assert } from './errors.ts';

/** Randomness as the code sees it, so that a seed can replay a run. */
export interface Random {
  bytes(length: number): Uint8Array;
  /** An integer in [0, below); `below` is a whole number from 1 to 2^48. */
  int(below: number): number;
}

const BELOW_MAX = 2 ** 48;
/** A draw of the seeded generator has this many values. */
const DRAW_RANGE = 2 ** 32;

function checkBelow(below: number): void {
  const isFit = Number.isInteger(below) && below >= 1 && below <= BELOW_MAX;
  assert(isFit, `a random integer needs a whole limit from 1 to 2^48, not ${below}`);
}

/** A call to the generator costs more than the bytes of a hundred ids. */
const POOL_BYTES = 4096;
const POOLED_BYTES_MAX = 64;
const pool = new Uint8Array(POOL_BYTES);
let poolUsed = POOL_BYTES;

/** Bytes that nobody had before; what is given out does not stay in the pool. */
function pooledBytes(length: number): Uint8Array {
  if (poolUsed + length > POOL_BYTES) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  const bytes = pool.slice(poolUsed, poolUsed + length);
  pool.fill(0, poolUsed, poolUsed + length);
  poolUsed += length;
  return bytes;
}

export const systemRandom: Random = {
  bytes: (length) => (length <= POOLED_BYTES_MAX ? pooledBytes(length) : randomBytes(length)),
  int(below) {
    checkBelow(below);
    const limit = Math.floor(BELOW_MAX / below) * below;
    for (;;) {
      const value = randomBytes(6).readUIntBE(0, 6);
      if (value < limit) return value % below;
    }
  },
};

/**
 * A small, fast generator for tests and simulation (splitmix32). Never for secrets or ids of live objects.
 */
export function createSeededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  return {
    bytes: (length) => Uint8Array.from({ length }, () => next() & 0xff),
    int(below) {
      checkBelow(below);
      if (below <= DRAW_RANGE) return Math.floor((next() / DRAW_RANGE) * below);
      // One draw cannot reach every value of so wide a range: the second one fills the gaps.
      const fraction = (next() + next() / DRAW_RANGE) / DRAW_RANGE;
      return Math.min(below - 1, Math.floor(fraction * below));
    },
  };
}
