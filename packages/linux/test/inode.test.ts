import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  changeOwner,
  deviceNumber,
  makeNode,
  renameFile,
  setFileTimes,
  syncDirectory,
  syncFileSystem,
} from '../src/inode.ts';
import { isRoot, scratchDirectory } from './scratch.ts';

const directory = scratchDirectory();
const at = (name: string) => join(directory, name);
const timesOf = (path: string) => {
  const { atimeNs, mtimeNs } = lstatSync(path, { bigint: true });
  return [atimeNs, mtimeNs];
};

it.each([
  [0, 0, 0],
  [1, 3, 0x103],
  [8, 255, 0x8ff],
  [259, 65_537, 0x1001_0301],
  [4095, 0xfffff, 0xffff_ffff],
])('encodes device %i:%i', (major, minor, number) => {
  expect(deviceNumber(major, minor)).toBe(number);
});

describe('nodes', () => {
  it('makes a FIFO', () => {
    makeNode(at('fifo'), { mode: constants.S_IFIFO | 0o600 });
    expect(lstatSync(at('fifo')).isFIFO()).toBe(true);
  });

  it.runIf(isRoot)('makes devices with large numbers (needs root)', () => {
    makeNode(at('device'), { mode: constants.S_IFCHR | 0o600, major: 259, minor: 65_537 });
    const stat = lstatSync(at('device'));
    expect(stat.isCharacterDevice()).toBe(true);
    const glibcNumber = (259n << 8n) | 1n | (0x10000n << 12n);
    expect(BigInt(stat.rdev)).toBe(glibcNumber);
  });
});

describe('times', () => {
  const path = at('dated');
  writeFileSync(path, '');

  it.each([
    [1n, 999_999_999n],
    [1_700_000_000_123_456_789n, 0n],
    [-1n, -1_500_000_000n],
  ])('sets %i and %i to the nanosecond', (access, modification) => {
    setFileTimes(path, { access, modification });
    expect(timesOf(path)).toEqual([access, modification]);
  });

  it('leaves one alone and sets the other to the present', () => {
    setFileTimes(path, { access: 5n, modification: 7n });
    const before = BigInt(Date.now()) * 1_000_000n;
    setFileTimes(path, { access: 'omit', modification: 'now' });
    const [access, modification] = timesOf(path);
    expect(access).toBe(5n);
    expect(Number(((modification ?? 0n) - before) / 1_000_000_000n)).toBeLessThan(60);
    expect(Number(((modification ?? 0n) - before) / 1_000_000_000n)).toBeGreaterThan(-60);
  });

  it('dates a link itself, and a file by descriptor', () => {
    symlinkSync('dated', at('link'));
    setFileTimes(at('link'), { access: 11n, modification: 13n });
    expect(timesOf(at('link'))[1]).toBe(13n);
    expect(timesOf(path)[1]).not.toBe(13n);
    const fd = openSync(path, 'r');
    setFileTimes(fd, { access: 17n, modification: 19n });
    closeSync(fd);
    expect(timesOf(path)[1]).toBe(19n);
  });
});

describe('renames', () => {
  const write = (name: string, text: string) => writeFileSync(at(name), text);
  const read = (name: string) => readFileSync(at(name), 'utf8');

  it('refuses to replace when asked to', () => {
    write('a', 'A');
    write('b', 'B');
    expect(() => renameFile(at('a'), at('b'), 'no-replace')).toThrowError(
      expect.objectContaining({ code: 'already-exists' }),
    );
    expect(read('b')).toBe('B');
    renameFile(at('a'), at('c'), 'no-replace');
    expect(existsSync(at('a'))).toBe(false);
  });

  it('exchanges two names, and replaces', () => {
    write('x', 'X');
    mkdirSync(at('y'));
    const dirFd = openSync(directory, 'r');
    renameFile('x', 'y', 'exchange', { fromDirFd: dirFd, toDirFd: dirFd });
    closeSync(dirFd);
    expect(lstatSync(at('x')).isDirectory()).toBe(true);
    expect(read('y')).toBe('X');
    write('z', 'Z');
    renameFile(at('y'), at('z'), 'replace');
    expect(read('z')).toBe('X');
  });
});

it.runIf(isRoot)(
  'changes the owner of a link and of a descriptor, to ids of 32 bits (needs root)',
  () => {
    writeFileSync(at('owned'), '');
    symlinkSync('owned', at('owned-link'));
    changeOwner(at('owned-link'), 4_000_000_000, 100_001);
    expect(lstatSync(at('owned-link'))).toMatchObject({ uid: 4_000_000_000, gid: 100_001 });
    expect(lstatSync(at('owned')).uid).toBe(0);
    const fd = openSync(at('owned'), 'r');
    changeOwner(fd, -1, 7);
    closeSync(fd);
    expect(lstatSync(at('owned'))).toMatchObject({ uid: 0, gid: 7 });
  },
);

it('syncs a directory and its file system', async () => {
  await syncDirectory(directory);
  await expect(syncDirectory(at('missing'))).rejects.toThrow('ENOENT');
  const fd = openSync(directory, 'r');
  fsyncSync(fd);
  syncFileSystem(fd);
  closeSync(fd);
});
