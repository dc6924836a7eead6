import { createSeededRandom, type Random, systemRandom } from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

const SOURCES: [string, Random][] = [
  ['systemRandom', systemRandom],
  ['createSeededRandom', createSeededRandom(1)],
];

describe.each(SOURCES)('%s', (_name, random) => {
  it('stays below the limit, up to 2^48', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 48 }), (below) => {
        const value = random.int(below);
        expect(Number.isInteger(value) && value >= 0 && value < below).toBe(true);
      }),
      { seed: 1 },
    );
    expect(random.int(1)).toBe(0);
  });

  it('reaches every value of a small range about as often', () => {
    const counts = [0, 0, 0, 0, 0, 0, 0];
    for (let i = 0; i < 70_000; i++) {
      const value = random.int(counts.length);
      counts[value] = (counts[value] ?? 0) + 1;
    }
    // Ten standard deviations (93) from the mean: no run of a fair source gets there.
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(930);
  });

  it('reaches odd values and both halves of a range wider than one draw', () => {
    const values = Array.from({ length: 200 }, () => random.int(2 ** 48));
    expect(values.some((value) => value % 2 === 1)).toBe(true);
    expect(
      values.some((value) => value < 2 ** 47) && values.some((value) => value >= 2 ** 47),
    ).toBe(true);
  });

  it('gives as many bytes as asked for, of every value', () => {
    expect(random.bytes(0)).toHaveLength(0);
    expect(new Set(random.bytes(20_000)).size).toBe(256);
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 49])(
    'refuses a limit of %j',
    (below) => {
      expect(() => random.int(below)).toThrow('a whole limit from 1 to 2^48');
    },
  );
});

describe('createSeededRandom', () => {
  it('repeats itself from a seed and differs between seeds', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const draw = (from: number) => {
          const random = createSeededRandom(from);
          return Array.from({ length: 8 }, () => random.int(2 ** 32));
        };
        expect(draw(seed)).toEqual(draw(seed));
        expect(draw(seed)).not.toEqual(draw(seed + 1));
      }),
      { seed: 1 },
    );
  });
});
