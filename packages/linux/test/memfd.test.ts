import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createSealedMemfd, isSealed } from '../src/memfd.ts';

it('keeps its bytes against everybody', () => {
  const bytes = Buffer.alloc(200_000, 'x');
  const fd = createSealedMemfd('test', bytes);
  expect(isSealed(fd)).toBe(true);
  expect(readFileSync(`/proc/self/fd/${fd}`).equals(bytes)).toBe(true);
  expect(() => writeSync(fd, 'y', 0)).toThrow('EPERM');
  expect(() => ftruncateSync(fd, 1)).toThrow('EPERM');
  const again = openSync(`/proc/self/fd/${fd}`, 'r+');
  expect(() => writeSync(again, 'y', 0)).toThrow('EPERM');
  closeSync(again);
  closeSync(fd);
});

it('carries the execute permission only when asked', () => {
  const data = createSealedMemfd('data', Buffer.from('x'));
  const program = createSealedMemfd('program', Buffer.from('x'), { executable: true });
  expect(isSealed(program)).toBe(true);
  expect(fstatSync(program).mode & 0o111).toBe(0o111);
  expect(fstatSync(data).mode & 0o111).toBe(0);
  closeSync(data);
  closeSync(program);
});
