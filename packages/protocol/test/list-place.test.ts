import { expect, test } from 'vitest';
import { compareListPlaces, formatListPlace, parseListPlace } from '../src/index.ts';

const place = (createdAtMs: number, random = 'aaaaaaaaaaaaaaaa') => ({
  createdAtMs,
  id: `sb-local-edge1-${random}`,
});

test('a place comes back as it was', () => {
  const one = place(1_796_062_984_136);
  expect(parseListPlace(formatListPlace(one))).toEqual(one);
  expect(formatListPlace(one)).toMatch(/^[A-Za-z0-9_-]{1,512}$/);
});

test.each(['', 'x', 'bm90IGEgcGxhY2U', '!!!!', formatListPlace(place(1)).slice(0, -4)])(
  'what is no place is an invalid argument: %s',
  (text) => {
    expect(() => parseListPlace(text)).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
  },
);

test('places are in the order of creation, and of their ids within a millisecond', () => {
  const sorted = [place(1, 'bbbbbbbbbbbbbbbb'), place(2), place(2, 'aaaaaaaaaaaaaaab'), place(10)];
  expect([...sorted].reverse().sort(compareListPlaces)).toEqual(sorted);
  expect(compareListPlaces(place(3), place(3))).toBe(0);
});
