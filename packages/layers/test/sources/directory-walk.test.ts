import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { O_PATH, openAt } from '@dsec/linux';
import { describe, expect, it } from 'vitest';
import { type WalkOptions, walkDirectory } from '../../src/sources/directory-walk.ts';
import { errorWith, scratchDirectory } from './scratch.ts';

const scratch = scratchDirectory();
const defaults: WalkOptions = { excluded: new Set(), oneFileSystem: true, entriesMax: 100_000 };

function* walk(path: string, options: Partial<WalkOptions> = {}) {
  const fd = openAt(path, { flags: O_PATH | constants.O_DIRECTORY });
  try {
    yield* walkDirectory(fd, { ...defaults, ...options });
  } finally {
    closeSync(fd);
  }
}

const pathsOf = (path: string, options?: Partial<WalkOptions>) =>
  Array.from(walk(path, options), (entry) => entry.path);

const openDescriptors = () => readdirSync('/proc/self/fd').length;

function makeTree(name: string): string {
  const root = join(scratch, name);
  for (const each of ['b/c/d', 'b/a', 'a.d', 'a', 'z'])
    mkdirSync(join(root, each), { recursive: true });
  for (const each of ['b/c/f', 'b/B', 'a/1', 'a/10', 'a/2', 'a-b'])
    writeFileSync(join(root, each), '');
  writeFileSync(Buffer.from(`${root}/\xff`, 'latin1'), '');
  symlinkSync('/etc', join(root, 'link'));
  return root;
}

it('meets parents first and names in the order of their bytes', () => {
  const before = openDescriptors();
  expect(pathsOf(makeTree('order'))).toEqual([
    '',
    'a',
    'a/1',
    'a/10',
    'a/2',
    'a-b',
    'a.d',
    'b',
    'b/B',
    'b/a',
    'b/c',
    'b/c/d',
    'b/c/f',
    'link',
    'z',
    '\xff',
  ]);
  expect(openDescriptors()).toBe(before);
});

it('leaves out what it is told, with everything below', () => {
  const excluded = new Set(['b/c', 'a', 'z', '\xff', 'not/there']);
  const root = makeTree('excluded');
  expect(pathsOf(root, { excluded })).toEqual(['', 'a-b', 'a.d', 'b', 'b/B', 'b/a', 'link']);
});

it('has a limit on the entries, and leaves no descriptor open', () => {
  const root = makeTree('limited');
  const before = openDescriptors();
  expect(pathsOf(root, { entriesMax: 15 })).toHaveLength(16);
  expect(() => pathsOf(root, { entriesMax: 14 })).toThrowError(errorWith('import-limit'));
  for (const entry of walk(root)) if (entry.path === 'b/c/d') break;
  expect(openDescriptors()).toBe(before);
});

describe('a tree deeper than any path', () => {
  const name = 'd'.repeat(100);
  const depth = 1500;

  function makeDeep(root: string): void {
    mkdirSync(root);
    let fd = openSync(root, constants.O_DIRECTORY);
    for (let level = 0; level < depth; level += 1) {
      mkdirSync(`/proc/self/fd/${fd}/${name}`);
      if (level % 500 === 0) writeFileSync(`/proc/self/fd/${fd}/file`, '');
      const below = openSync(`/proc/self/fd/${fd}/${name}`, constants.O_DIRECTORY);
      closeSync(fd);
      fd = below;
    }
    closeSync(fd);
  }

  it('is walked with few descriptors', () => {
    const root = join(scratch, 'deep');
    makeDeep(root);
    const before = openDescriptors();
    let most = 0;
    let entries = 0;
    let longest = 0;
    for (const { path } of walk(root)) {
      entries += 1;
      longest = Math.max(longest, path.length);
      if (entries % 50 === 0) most = Math.max(most, openDescriptors() - before);
    }
    expect(entries).toBe(1 + depth + 3);
    expect(longest).toBe(depth * 101 - 1);
    expect(most).toBeGreaterThan(10);
    expect(most).toBeLessThan(40);
    expect(openDescriptors()).toBe(before);
  });
});

describe('a tree that changes', () => {
  it('by an entry that vanishes', () => {
    const root = makeTree('vanishing');
    const walking = () => {
      for (const { path } of walk(root)) if (path === 'a') rmSync(join(root, 'a-b'));
    };
    expect(walking).toThrowError(errorWith('conflict', /"a-b"/));
  });

  it('by a directory that becomes a link: what was opened is what is walked', () => {
    const root = makeTree('swapped');
    const outside = join(scratch, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'secret'), '');
    const paths: string[] = [];
    for (const { path } of walk(root)) {
      paths.push(path);
      if (path !== 'b') continue;
      renameSync(join(root, 'b'), join(root, 'zz'));
      symlinkSync(outside, join(root, 'b'));
    }
    expect(paths).toContain('b/c/f');
    expect(paths).not.toContain('b/secret');
  });

  it('by a parent that moves away while it is not held open', () => {
    const root = join(scratch, 'moving');
    let path = root;
    for (let level = 0; level < 60; level += 1) path = join(path, 'd');
    mkdirSync(path, { recursive: true });
    const elsewhere = join(scratch, 'elsewhere');
    mkdirSync(elsewhere);
    const walking = () => {
      for (const entry of walk(root)) {
        if (entry.path.length !== 60 * 2 - 1) continue;
        renameSync(join(root, 'd/d/d/d/d/d/d/d/d/d'), join(elsewhere, 'x'));
      }
    };
    expect(walking).toThrowError(errorWith('conflict'));
  });

  it('by a directory that is removed after it was listed', () => {
    const root = makeTree('removed');
    const walking = () => {
      for (const { path } of walk(root)) {
        if (path === 'b/c/d') rmdirSync(join(root, 'z'));
      }
    };
    expect(walking).toThrowError(errorWith('conflict'));
  });
});
