import { expect, test } from 'vitest';
import { formatCursor, keyPart, mapBounded, nameOfKeyPart, parseCursor } from '../src/paging.ts';

test('a cursor is the last name; what is none is refused', () => {
  expect(parseCursor(formatCursor('name'), /^[a-z]+$/)).toBe('name');
  for (const cursor of ['', '!!', formatCursor('UPPER')]) {
    expect(() => parseCursor(cursor, /^[a-z]+$/)).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
  }
});

test('names that end in a dot are parts of keys, and come back', () => {
  for (const name of ['a', 'a.', 'a.b']) expect(nameOfKeyPart(keyPart(name))).toBe(name);
  expect(keyPart('a.')).not.toMatch(/\.$/);
});

test('works on a bounded number at a time, and keeps the order', async () => {
  let [now, most] = [0, 0];
  const results = await mapBounded([5, 1, 4, 2, 3], 2, async (ms) => {
    now += 1;
    most = Math.max(most, now);
    await new Promise((resolve) => setTimeout(resolve, ms));
    now -= 1;
    return ms * 10;
  });
  expect(results).toEqual([50, 10, 40, 20, 30]);
  expect(most).toBe(2);
});

test('the first failure is told', async () => {
  const work = async (item: number) => {
    if (item === 2) throw new Error('two');
  };
  await expect(mapBounded([1, 2, 3], 1, work)).rejects.toThrow('two');
});
