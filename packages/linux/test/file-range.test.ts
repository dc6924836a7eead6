import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  allocateRange,
  copyFileRange,
  dataRanges,
  punchHole,
  seekData,
  seekHole,
} from '../src/file-range.ts';
import { scratchDirectory } from './scratch.ts';

const directory = scratchDirectory();
const BLOCK = 4096;
const GAP = 64 * BLOCK;
let made = 0;
const newFile = () => openSync(join(directory, `f${made++}`), 'w+');

it('finds the data of a sparse file', () => {
  const fd = newFile();
  writeSync(fd, Buffer.alloc(BLOCK, 1), 0, BLOCK, GAP);
  writeSync(fd, Buffer.alloc(BLOCK, 2), 0, BLOCK, 3 * GAP);
  ftruncateSync(fd, 5 * GAP);
  expect([...dataRanges(fd, 5 * GAP)]).toEqual([
    { start: GAP, end: GAP + BLOCK },
    { start: 3 * GAP, end: 3 * GAP + BLOCK },
  ]);
  expect([...dataRanges(fd, GAP + 10)]).toEqual([{ start: GAP, end: GAP + 10 }]);
  expect(seekData(fd, 4 * GAP)).toBeUndefined();
  expect(seekHole(fd, GAP)).toBe(GAP + BLOCK);
  closeSync(fd);
});

it('finds nothing in an empty file and in one hole', () => {
  const fd = newFile();
  expect([...dataRanges(fd, 0)]).toEqual([]);
  ftruncateSync(fd, 2 ** 40);
  expect([...dataRanges(fd, 2 ** 40)]).toEqual([]);
  closeSync(fd);
});

it('gives blocks back and keeps the size', () => {
  const fd = newFile();
  writeSync(fd, Buffer.alloc(16 * BLOCK, 7));
  const before = fstatSync(fd).blocks;
  punchHole(fd, 4 * BLOCK, 8 * BLOCK);
  expect(fstatSync(fd).size).toBe(16 * BLOCK);
  expect(fstatSync(fd).blocks).toBe(before - 64);
  const bytes = Buffer.alloc(16 * BLOCK);
  readSync(fd, bytes, 0, bytes.length, 0);
  expect(bytes.subarray(4 * BLOCK, 12 * BLOCK).every((byte) => byte === 0)).toBe(true);
  expect(bytes[4 * BLOCK - 1]).toBe(7);
  expect(bytes[12 * BLOCK]).toBe(7);
  closeSync(fd);
});

it('reserves blocks with and without growing the file', () => {
  const fd = newFile();
  allocateRange(fd, 0, 8 * BLOCK, { keepSize: true });
  expect(fstatSync(fd)).toMatchObject({ size: 0, blocks: 64 });
  allocateRange(fd, 0, 8 * BLOCK);
  expect(fstatSync(fd).size).toBe(8 * BLOCK);
  closeSync(fd);
});

it('copies inside the kernel and reports a short copy at the end', () => {
  const source = newFile();
  const target = newFile();
  writeSync(source, 'abcdefgh');
  writeSync(target, '--------');
  const copied = copyFileRange({ fd: source, offset: 2 }, { fd: target, offset: 4 }, 100);
  expect(copied).toBe(6);
  expect(readFileSync(`/proc/self/fd/${target}`, 'utf8')).toBe('----cdefgh');
  expect(copyFileRange({ fd: source, offset: 8 }, { fd: target, offset: 0 }, 100)).toBe(0);
  closeSync(source);
  closeSync(target);
});

it('turns a failure into a typed error', () => {
  const fd = openSync('/dev/null', 'r');
  expect(() => punchHole(fd, 0, BLOCK)).toThrowError(
    expect.objectContaining({ details: expect.objectContaining({ syscall: 'fallocate' }) }),
  );
  closeSync(fd);
});
