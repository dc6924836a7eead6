import { expect, test } from 'vitest';
import { CRASH_POINTS, crashPoint } from '../src/crash-point.ts';

test('names are unique, and nothing is armed by itself', () => {
  expect(new Set(CRASH_POINTS).size).toBe(CRASH_POINTS.length);
  for (const point of CRASH_POINTS) crashPoint(point);
});
