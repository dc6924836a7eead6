import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { O_PATH, openAt, type ResolveFlag } from '../src/open.ts';
import { scratchDirectory } from './scratch.ts';

const root = scratchDirectory();
mkdirSync(join(root, 'box/sub'), { recursive: true });
writeFileSync(join(root, 'secret'), 'secret');
writeFileSync(join(root, 'box/sub/file'), 'inside');
symlinkSync('../secret', join(root, 'box/up'));
symlinkSync('/sub/file', join(root, 'box/absolute'));
symlinkSync('sub/file', join(root, 'box/plain'));
const box = openSync(join(root, 'box'), 'r');

function read(path: string | Uint8Array, ...resolve: ResolveFlag[]): string {
  const fd = openAt(path, { dirFd: box, resolve });
  try {
    const buffer = Buffer.alloc(16);
    return buffer.toString('utf8', 0, readSync(fd, buffer));
  } finally {
    closeSync(fd);
  }
}

const errno = (name: string) =>
  expect.objectContaining({ details: expect.objectContaining({ errnoName: name }) });

describe('walks', () => {
  it('follows everything without a rule', () => {
    expect(read('up')).toBe('secret');
    expect(read('../secret')).toBe('secret');
  });

  it.each([
    ['up', 'beneath', 'EXDEV'],
    ['../secret', 'beneath', 'EXDEV'],
    ['absolute', 'beneath', 'EXDEV'],
    ['plain', 'noSymlinks', 'ELOOP'],
    ['up', 'inRoot', 'ENOENT'],
    ['../../../etc/passwd', 'inRoot', 'ENOENT'],
    ['/proc/self/exe', 'noMagicLinks', 'ELOOP'],
    ['/proc/self/status', 'noCrossMounts', 'EXDEV'],
  ] as [string, ResolveFlag, string][])('refuses %s with %s (%s)', (path, flag, name) => {
    expect(() => read(path, flag)).toThrowError(errno(name));
  });

  it('reads inside with each rule', () => {
    expect(read('sub/file', 'beneath', 'noSymlinks', 'noMagicLinks')).toBe('inside');
    expect(read('plain', 'beneath')).toBe('inside');
    expect(read('absolute', 'inRoot')).toBe('inside');
  });
});

it('makes a file with any bytes in its name, closed on exec', () => {
  const name = Buffer.from([0x66, 0xff, 0xfe]);
  const flags = constants.O_CREAT | constants.O_EXCL | constants.O_RDWR;
  const fd = openAt(name, { dirFd: box, flags, mode: 0o640 });
  expect(fstatSync(fd).mode & 0o777).toBe(0o640);
  const CLOSE_ON_EXEC = 0o2_000_000;
  const info = readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8');
  expect(Number.parseInt(/flags:\s+(\d+)/.exec(info)?.[1] ?? '0', 8) & CLOSE_ON_EXEC).not.toBe(0);
  closeSync(fd);
  expect(() => openAt(name, { dirFd: box, flags, mode: 0o640 })).toThrowError(
    expect.objectContaining({ code: 'already-exists' }),
  );
});

it('opens a name without rights on it', () => {
  const fd = openAt('sub', { dirFd: box, flags: O_PATH });
  expect(fstatSync(fd).isDirectory()).toBe(true);
  expect(() => readSync(fd, Buffer.alloc(1))).toThrow('EBADF');
  closeSync(fd);
});
