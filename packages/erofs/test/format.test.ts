import { expect, it } from 'vitest';
import { alignUp, decodeDevice, encodeDevice, kindOfMode, rowOf } from '../src/format.ts';

it.each([
  [0, 0, 0],
  [1, 3, 0x103],
  [8, 255, 0x8ff],
  [8, 256, 0x0010_0800],
  [4095, 1_048_575, 0xffff_ffff],
])('encodes device %i:%i as the kernel does', (major, minor, encoded) => {
  expect(encodeDevice(major, minor)).toBe(encoded);
  expect(decodeDevice(encoded)).toEqual({ major, minor });
});

it('knows every kind by mode and by directory entry', () => {
  expect(kindOfMode(0o100644)).toBe('file');
  expect(kindOfMode(0o040755)).toBe('directory');
  expect(kindOfMode(0o000644)).toBeUndefined();
  expect(kindOfMode(0o150000)).toBeUndefined();
  expect(rowOf('symlink')).toEqual({ kind: 'symlink', typeBits: 0o120000, direntType: 7 });
});

it('rounds up past 32 bits', () => {
  expect(alignUp(2 ** 40 + 1, 4096)).toBe(2 ** 40 + 4096);
  expect(alignUp(4096, 4096)).toBe(4096);
});
