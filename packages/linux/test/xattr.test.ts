import { closeSync, constants, openSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { O_PATH, openAt } from '../src/open.ts';
import { getXattr, listXattrs, removeXattr, setXattr } from '../src/xattr.ts';
import { isRoot, scratchDirectory } from './scratch.ts';

const directory = scratchDirectory();
const path = join(directory, 'file');
writeFileSync(path, '');

describe('by path and by descriptor', () => {
  const fd = openSync(path, 'r');
  const pathFd = openAt(path, { flags: O_PATH });

  it.each([
    ['path', path],
    ['path as bytes', Buffer.from(path)],
    ['descriptor', fd],
    ['O_PATH descriptor', pathFd],
  ])('%s', (label, target) => {
    const name = `user.${label}`;
    const value = Buffer.from([0, 255, 10, 0]);
    setXattr(target, name, value);
    expect(getXattr(target, name)).toEqual(value);
    expect(listXattrs(target)).toContain(name);
    setXattr(target, name, Buffer.alloc(0));
    expect(getXattr(target, name)).toEqual(Buffer.alloc(0));
    removeXattr(target, name);
    expect(getXattr(target, name)).toBeUndefined();
  });

  it('closes', () => {
    closeSync(fd);
    closeSync(pathFd);
  });
});

it('carries names that are not UTF-8', () => {
  const name = 'user.\xff\xfe';
  setXattr(path, name, Buffer.from('x'));
  expect(listXattrs(path)).toContain(name);
  removeXattr(path, name);
});

it('returns copies, not its scratch buffer', () => {
  setXattr(path, 'user.a', Buffer.from('first'));
  setXattr(path, 'user.b', Buffer.from('other'));
  const a = getXattr(path, 'user.a');
  getXattr(path, 'user.b');
  expect(a?.toString()).toBe('first');
});

it('keeps create and replace apart', () => {
  setXattr(path, 'user.mode', Buffer.from('1'), 'create');
  expect(() => setXattr(path, 'user.mode', Buffer.from('2'), 'create')).toThrowError(
    expect.objectContaining({ code: 'already-exists' }),
  );
  expect(() => setXattr(path, 'user.none', Buffer.from('2'), 'replace')).toThrowError(
    expect.objectContaining({ code: 'not-found' }),
  );
  expect(getXattr(path, 'user.mode')?.toString()).toBe('1');
});

it('lists nothing on a file without any', () => {
  const bare = join(directory, 'bare');
  writeFileSync(bare, '');
  expect(listXattrs(bare).filter((name) => name.startsWith('user.'))).toEqual([]);
});

it.runIf(isRoot)('touches a link itself, not its target (needs root)', () => {
  const link = join(directory, 'link');
  symlinkSync(path, link);
  setXattr(link, 'trusted.of-link', Buffer.from('1'));
  expect(getXattr(path, 'trusted.of-link')).toBeUndefined();
  expect(getXattr(link, 'trusted.of-link')?.toString()).toBe('1');
  const fd = openAt(link, { flags: O_PATH | constants.O_NOFOLLOW });
  expect(getXattr(fd, 'trusted.of-link')?.toString()).toBe('1');
  closeSync(fd);
});
