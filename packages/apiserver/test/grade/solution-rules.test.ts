import type { FileEntry } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { checkPath, outermost, reasonToLeave, staysBelow } from '../../src/grade/solution-rules.ts';

const RULES = { root: '/w', testPaths: ['/w/tests', '/w/a/check.py'], fullState: false };

const entryOf = (fields: Partial<FileEntry>): FileEntry => ({
  ...{ name: 'x', kind: 'file', mode: 0o644, uid: 0, gid: 0, sizeBytes: 1, allocatedBytes: 1 },
  ...{ links: 1, mtimeSeconds: 0, mtimeNanoseconds: 0 },
  ...fields,
});

describe('what of a solution is left', () => {
  it.each([
    ['/w/a.py', {}, undefined],
    ['/w/dir', { kind: 'directory', links: 5 }, undefined],
    ['/w/f', { kind: 'fifo' }, 'kind'],
    ['/w/f', { kind: 'socket' }, 'kind'],
    ['/w/f', { kind: 'char' }, 'kind'],
    ['/w/f', { kind: 'block' }, 'kind'],
    ['/w/f', { links: 2 }, 'hard-link'],
    ['/w/tests', { kind: 'directory' }, 'test'],
    ['/w/tests/deep/x', {}, 'test'],
    ['/w/tests2', {}, undefined],
    ['/w/a/check.py', {}, 'test'],
    ['/w/a/conftest.py', { name: 'conftest.py' }, 'runs-by-itself'],
    ['/w/evil.pth', { name: 'evil.pth' }, 'runs-by-itself'],
    ['/w/sitecustomize.py', { name: 'sitecustomize.py' }, 'runs-by-itself'],
    ['/w/__pycache__/m.pyc', { name: 'm.pyc' }, 'runs-by-itself'],
    ['/w/.git', { name: '.git', kind: 'directory' }, 'runs-by-itself'],
    ['/w/.git', { name: '.git', kind: 'symlink', symlinkTarget: 'x' }, 'runs-by-itself'],
    ['/w/x', { nameBase64: 'AAAA' }, 'name'],
    ['/w/l', { kind: 'symlink', symlinkTarget: 'a' }, undefined],
    ['/w/l', { kind: 'symlink', symlinkTarget: '/etc/passwd' }, 'link-target'],
    ['/w/l', { kind: 'symlink', symlinkTarget: '../etc' }, 'link-target'],
  ] as const)('%s %j: %s', (path, fields, reason) => {
    expect(reasonToLeave(path, entryOf(fields), RULES)).toBe(reason);
  });

  it('is less with the full state, but never what is no file, directory or link of the tree', () => {
    const full = { ...RULES, fullState: true };
    expect(reasonToLeave('/w/conftest.py', entryOf({ name: 'conftest.py' }), full)).toBeUndefined();
    expect(reasonToLeave('/w/tests/x', entryOf({}), full)).toBeUndefined();
    expect(reasonToLeave('/w/f', entryOf({ kind: 'fifo' }), full)).toBe('kind');
    const link = entryOf({ kind: 'symlink', symlinkTarget: '/etc' });
    expect(reasonToLeave('/w/l', link, full)).toBe('link-target');
  });
});

describe('a link', () => {
  it.each([
    ['/w/l', 'x', true],
    ['/w/a/l', '../x', true],
    ['/w/a/l', './x/./y', true],
    ['/w/a/b/l', '../../x', true],
    ['/w/a/l', '../../x', false],
    ['/w/l', '..', false],
    ['/w/a/l', '..', true],
    // Where x is itself a link, that leads further up than it says.
    ['/w/a/b/l', 'x/../..', false],
    ['/w/l', '', false],
    ['/w/l', '/w/x', false],
  ])('%s to %s stays in the tree: %s', (path, target, stays) => {
    expect(staysBelow(path, target, '/w')).toBe(stays);
  });
});

describe('paths of a request', () => {
  it('are plain', () => {
    expect(checkPath('/w/src/', 'f')).toBe('/w/src');
    for (const path of ['/', '//w', '/w/../x', '/w/./x', '/proc/1', '/dev', '/.dsec/x']) {
      expect(() => checkPath(path, 'f'), path).toThrow(
        expect.objectContaining({ code: 'invalid-argument' }),
      );
    }
    expect(checkPath('/.dsecond', 'f')).toBe('/.dsecond');
  });

  it('count once where one holds the other', () => {
    expect(outermost(['/w/a', '/w', '/w', '/x/y'])).toEqual(['/w', '/x/y']);
  });
});
