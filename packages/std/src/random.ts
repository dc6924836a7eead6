import { randomBytes } from 'node:crypto';

/** Randomness as the code sees it, so that a seed can replay a run. */
export interface Random {
  bytes(length: number): Uint8Array;
  /** An integer in [0, below). */
  int(below: number): number;
}

export const systemRandom: Random = {
  bytes: (length) => randomBytes(length),
  int(below) {
    const limit = Math.floor(2 ** 48 / below) * below;
    for (;;) {
      const value = randomBytes(6).readUIntBE(0, 6);
      if (value < limit) return value % below;
    }
  },
};

/** A small, fast generator for tests and simulation (splitmix32). Never for secrets or ids of live objects. */
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
    int: (below) => Math.floor((next() / 2 ** 32) * below),
  };
}
