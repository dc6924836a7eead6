import { expect, it } from 'vitest';
import { cString, descriptorPath, pathBytes, shownPath } from '../src/byte-path.ts';

it('keeps every byte of a path', () => {
  const raw = Buffer.from([0x2f, 0xff, 0x0a, 0xc3]);
  expect(pathBytes(raw)).toEqual(raw);
  expect(pathBytes('/é')).toEqual(Buffer.from('/é', 'utf8'));
  expect(pathBytes(new Uint8Array(raw))).toEqual(raw);
});

it('terminates without touching the original, and refuses a NUL inside', () => {
  const raw = Buffer.from('abc');
  expect(cString(raw.subarray(0, 2))).toEqual(Buffer.from('ab\0'));
  expect(raw.toString()).toBe('abc');
  expect(() => cString('a\0b')).toThrowError(expect.objectContaining({ code: 'invalid-argument' }));
});

it('shows a hostile name on one line', () => {
  expect(shownPath('a\nb')).toBe('"a\\nb"');
  expect(shownPath('x'.repeat(1000))).toHaveLength(203);
});

it('names a descriptor', () => {
  expect(descriptorPath(7)).toBe('/proc/self/fd/7');
});
