import type { EdgeId } from '@dsec/std';
import { expect, test } from 'vitest';
import { createOwnPlacements } from '../src/index.ts';

const edge = 'a' as EdgeId;

test('counts what is under way, and what has ended until a later view shows it', () => {
  const own = createOwnPlacements();
  const [one, two] = [own.begin(edge), own.begin(edge)];
  expect(own.count(edge)).toBe(2);
  one(true, 10);
  two(false, 10);
  expect(own.count(edge)).toBe(1);
  own.seen(edge, 9);
  expect(own.count(edge)).toBe(1);
  own.seen(edge, 11);
  expect(own.count(edge)).toBe(0);
});

test('a view that was asked for before a placement ended does not show it', () => {
  const own = createOwnPlacements();
  const end = own.begin(edge);
  own.seen(edge, 5);
  end(true, 6);
  own.seen(edge, 6);
  expect(own.count(edge)).toBe(1);
  expect(own.count('b' as EdgeId)).toBe(0);
});
