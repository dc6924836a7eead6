import { mkdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { addressOf, rawSyscall, syscall } from '../src/syscall.ts';
import { scratchDirectory } from './scratch.ts';

const SEEK_SET = 0;
const directory = scratchDirectory();

it('returns the negative errno raw, and the typed error otherwise', () => {
  expect(rawSyscall('lseek', -1, 0, SEEK_SET)).toBe(-9);
  expect(() => syscall('lseek', [-1, 0, SEEK_SET], 'fd')).toThrowError(
    expect.objectContaining({ details: { syscall: 'lseek', errno: 9, errnoName: 'EBADF' } }),
  );
});

it('passes a view into a larger buffer by its own address', () => {
  const bytes = Buffer.from(`....${directory}/renamed\0....${directory}/made\0`);
  const renamed = bytes.subarray(4, bytes.indexOf(0) + 1);
  const made = bytes.subarray(bytes.indexOf(0) + 5);
  mkdirSync(made.subarray(0, -1));
  syscall('renameat2', [-100, made, -100, renamed, 0]);
  expect(addressOf(made)).toBe(addressOf(bytes) + BigInt(bytes.indexOf(0) + 5));
  expect(() => mkdirSync(`${directory}/renamed`)).toThrow('EEXIST');
});
