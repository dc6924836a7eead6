import { wire } from '@dsec/protocol';
import { expect, test } from 'vitest';

const { bool, bytes, listOf, message, optional, pathList, string, struct, u8, u64 } = wire;

test('fields are in the order of their tags, whatever the order in which they were written', () => {
  const { fields } = message('m', { late: u8(9), early: bool(1), middle: optional(u8(4)) });
  expect(fields.map((field) => field.name)).toEqual(['early', 'middle', 'late']);
  expect(fields.map((field) => field.optional)).toEqual([false, true, false]);
});

test('the longest encoding counts every field with its header', () => {
  const inner = message('inner', { a: u64(1) });
  const outer = message('outer', {
    a: bytes(1, { bytesMax: 10 }),
    b: struct(2, inner),
    c: listOf(3, inner, { itemsMax: 2, bytesMax: 100 }),
  });
  expect(inner.bytesMax).toBe(6 + 8);
  expect(outer.bytesMax).toBe(6 + 10 + (6 + 14) + (6 + 100));
});

test('a tag is used once and is 1 to 65,535', () => {
  expect(() => message('m', { a: u8(1), b: u8(1) })).toThrow('m.b: the tag 1 is taken');
  expect(() => message('m', { a: u8(0) })).toThrow('out of range');
  expect(() => message('m', { a: u8(65_536) })).toThrow('out of range');
});

test('ranges of numbers, lengths and lists end up in min and max', () => {
  const { fields } = message('m', {
    a: u8(1, { minimum: 3, maximum: 5 }),
    b: string(2, { bytesMin: 1, bytesMax: 7 }),
    c: pathList(3, { itemsMin: 1, itemsMax: 4, itemBytesMax: 9, bytesMax: 50 }),
  });
  expect(fields.map(({ min, max }) => [min, max])).toEqual([
    [3, 5],
    [1, 7],
    [1, 4],
  ]);
  expect(fields[2]?.item?.max).toBe(9);
});
