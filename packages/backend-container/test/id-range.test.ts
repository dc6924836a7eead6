import { describe, expect, it } from 'vitest';
import { identityOf, rangeBase, rangeLast, slotsBelow } from '../src/id-range.ts';

describe('ranges', () => {
  it('follow one another, the id of PID 1 between them', () => {
    expect(rangeBase(0)).toBe(2 ** 30);
    expect(rangeBase(1) - rangeLast(0)).toBe(2);
    expect(identityOf(0).idMaps[0]?.outside).toBe(rangeLast(0) + 1);
  });
});

describe('slotsBelow', () => {
  it.each([
    ['', 32_768],
    ['user:100000:65536\n', 32_768],
    [`user:${2 ** 30 - 65_536}:65536\n`, 32_768],
    [`user:${2 ** 30 - 1}:2\n`, 0],
    [`user:${2 ** 30 + 65_536 * 5 + 17}:1\n`, 5],
    [`a:${2 ** 30 + 65_536 * 9}:65536\nb:${2 ** 30 + 65_536 * 4}:65536\n`, 4],
    ['# nothing of ours\n\n', 32_768],
  ])('%j leaves %i', (subordinate, slots) => {
    expect(slotsBelow(subordinate)).toBe(slots);
  });
});
