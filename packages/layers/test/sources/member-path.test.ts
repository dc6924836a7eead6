import { expect, it } from 'vitest';
import { memberPath, shown } from '../../src/sources/member-path.ts';
import { errorWith } from './scratch.ts';

it.each([
  ['a/b', 'a/b'],
  ['/a/b', 'a/b'],
  ['./a/./b/', 'a/b'],
  ['//a///b//', 'a/b'],
  ['.', ''],
  ['', ''],
  ['/', ''],
  ['./', ''],
  ['...', '...'],
  ['..a/b..', '..a/b..'],
  ['.a/.b', '.a/.b'],
  ['\xff/ \n', '\xff/ \n'],
])('%j is %j', (name, path) => {
  expect(memberPath(name, 100)).toBe(path);
});

it.each(['..', '../a', 'a/..', 'a/../b', '/..', './../x', 'a//..//b'])('%j is refused', (name) => {
  expect(() => memberPath(name, 100)).toThrowError(errorWith('import-invalid'));
});

it('has a limit on its length', () => {
  expect(memberPath('a'.repeat(100), 100)).toHaveLength(100);
  expect(() => memberPath('a'.repeat(101), 100)).toThrowError(errorWith('import-limit'));
});

it('is shown without anything that acts on a terminal', () => {
  expect(shown('a "b" \\ \x1b[31m\x9b\xff')).toBe('"a \\x22b\\x22 \\x5c \\x1b[31m\\x9b\\xff"');
  expect(shown('x'.repeat(300))).toBe(`"${'x'.repeat(200)}…"`);
});
