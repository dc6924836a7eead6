import { decodeMessage, encodeMessage, keepEncoded, wire } from '@dsec/protocol';
import { expect, test } from 'vitest';

const {
  bool,
  bytes,
  choice,
  i32,
  i64,
  listOf,
  message,
  optional,
  path,
  pathList,
  string,
  struct,
  u8,
  u16,
  u32,
  u64,
} = wire;

const Inner = message('inner', { flag: bool(1), size: optional(u16(2)) });
const Everything = message('everything', {
  a: u8(1),
  b: u16(2),
  c: u32(3),
  d: u64(4),
  e: i32(5),
  f: i64(6),
  g: bool(7),
  h: choice(8, ['red', 'green']),
  i: bytes(9, { bytesMax: 8 }),
  j: path(10, { bytesMax: 8 }),
  k: string(11, { bytesMax: 8 }),
  l: struct(12, Inner),
  m: listOf(13, Inner, { itemsMax: 3, bytesMax: 100 }),
  n: pathList(14, { itemsMax: 3, itemBytesMax: 4, bytesMax: 20 }),
});

const value = {
  a: 255,
  b: 65_535,
  c: 2 ** 32 - 1,
  d: Number.MAX_SAFE_INTEGER,
  e: -(2 ** 31),
  f: Number.MIN_SAFE_INTEGER,
  g: true,
  h: 'green' as const,
  i: Buffer.from([0, 1]),
  j: Buffer.from([0xff]),
  k: 'é✓',
  l: { flag: false },
  m: [{ flag: true, size: 3 }, { flag: false }],
  n: [Buffer.from('a'), Buffer.alloc(0)],
};

test('every kind comes back as it was', () => {
  expect(decodeMessage(Everything, encodeMessage(Everything, value))).toEqual(value);
});

test('the encoding is tag, length, value, little-endian', () => {
  expect(Buffer.from(encodeMessage(Inner, { flag: true, size: 0x1234 })).toString('hex')).toBe(
    '0100010000000102000200000' + '03412',
  );
});

test('byte fields are views of the input', () => {
  const input = encodeMessage(Everything, value);
  expect(decodeMessage(Everything, input).i.buffer).toBe(input.buffer);
});

const refused = (change: object) => () =>
  encodeMessage(Everything, { ...value, ...change } as typeof value);

test.each([
  ['a number above its range', { a: 256 }, 'a must be 0 to 255'],
  ['a fraction', { a: 1.5 }, 'a must be'],
  ['not a number', { a: '1' }, 'a must be'],
  ['NaN', { d: Number.NaN }, 'd must be'],
  ['an unsafe integer', { d: 2 ** 53 }, 'd must be'],
  ['a number for a bool', { g: 1 }, 'g must be true or false'],
  ['an unknown choice', { h: 'blue' }, 'h must be red or green'],
  ['bytes that are too long', { i: Buffer.alloc(9) }, 'i is 9 bytes long'],
  ['a string for bytes', { i: 'x' }, 'i must be bytes'],
  ['NUL in a path', { j: Buffer.from([0]) }, 'j must not contain NUL'],
  ['NUL in text', { k: 'a\0' }, 'k must not contain NUL'],
  ['a lone surrogate', { k: '\ud800' }, 'k must not contain lone surrogates'],
  ['text whose UTF-8 is too long', { k: '✓✓✓' }, 'k is 9 bytes long'],
  ['not an object', { l: 3 }, 'l must be an object'],
  ['a fault inside a structure', { l: { flag: true, size: 65_536 } }, 'size must be'],
  ['an unknown field inside', { l: { flag: true, other: 1 } }, 'inner has no field other'],
  ['too many items', { m: [value.l, value.l, value.l, value.l] }, 'm has 4 items'],
  ['an item that is too long', { n: [Buffer.from('aaaaa')] }, 'is 5 bytes long'],
  ['items that are too long together', { n: Array(3).fill(Buffer.from('aaaa')) }, 'n takes 24'],
  ['not a list', { n: 'x' }, 'n must be a list'],
  ['a missing field', { a: undefined }, 'a is missing'],
  ['an unknown field', { z: 1 }, 'everything has no field z'],
])('encoding refuses %s', (_, change, problem) => {
  expect(refused(change)).toThrow(expect.objectContaining({ code: 'invalid-argument' }));
  expect(refused(change)).toThrow(problem);
});

test('an absent field and one that is undefined are the same', () => {
  const both = [{ flag: true }, { flag: true, size: undefined }].map((v) =>
    Buffer.from(encodeMessage(Inner, v as { flag: boolean })).toString('hex'),
  );
  expect(both[0]).toBe(both[1]);
});

test('an item whose encoding is kept is written as any other', () => {
  const kept = { ...value, m: value.m.map((item) => keepEncoded(Inner, item)) };
  expect(encodeMessage(Everything, kept)).toEqual(encodeMessage(Everything, value));
  expect(() => keepEncoded(Inner, { flag: 'yes' } as never)).toThrow('inner: flag');
});
