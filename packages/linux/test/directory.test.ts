import { closeSync, constants, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { directoryNames, makeDirectories, readLink } from '../src/directory.ts';
import { O_PATH, openAt } from '../src/open.ts';
import { scratchDirectory } from './scratch.ts';

const root = scratchDirectory();

function within<T>(path: string | Uint8Array, flags: number, use: (fd: number) => T): T {
  const fd = openAt(path, { flags });
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}

it('lists every name, whatever its bytes, over many batches', () => {
  const directory = join(root, 'many');
  mkdirSync(directory);
  const names = Array.from({ length: 2000 }, (_, i) => `${i}-${'n'.repeat(i % 240)}`);
  names.push('\xff\xfe not UTF-8', 'new\nline', '...');
  for (const name of names) {
    writeFileSync(Buffer.from(`${directory}/${name}`, 'latin1'), '');
  }
  const listed = within(directory, constants.O_DIRECTORY, (fd) => [...directoryNames(fd)]);
  expect(listed.sort()).toEqual(names.sort());
});

it('lists nothing of an empty directory, and refuses a file', () => {
  const directory = join(root, 'empty');
  mkdirSync(directory);
  expect(within(directory, constants.O_DIRECTORY, (fd) => [...directoryNames(fd)])).toEqual([]);
  const file = join(root, 'file');
  writeFileSync(file, '');
  expect(() => within(file, 0, (fd) => [...directoryNames(fd)])).toThrowError(
    expect.objectContaining({ code: 'invalid-argument' }),
  );
});

it.each([
  ['bytes', '/x/\xff\xfe'],
  ['longest', 'y'.repeat(4095)],
])('reads a link target: %s', (name, target) => {
  const path = join(root, name);
  symlinkSync(Buffer.from(target, 'latin1'), path);
  expect(within(path, O_PATH | constants.O_NOFOLLOW, readLink)).toBe(target);
});

it('makes what is missing of a path, and ends where no directory can be made', () => {
  const path = join(root, 'made', 'a', 'b');
  makeDirectories(path, 0o700);
  makeDirectories(path, 0o755);
  expect(statSync(join(root, 'made')).mode & 0o777).toBe(0o700);
  expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(() => makeDirectories('/proc/dsec/a')).toThrowError(
    expect.objectContaining({ code: 'not-found' }),
  );
  expect(() => makeDirectories('/dev/null/a')).toThrowError(
    expect.objectContaining({ code: 'invalid-argument' }),
  );
});
