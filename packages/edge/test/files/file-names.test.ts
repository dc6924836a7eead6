import { type FileAttributesFields, PATH_BYTES_MAX } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { entryOf, pathOf } from '../../src/files/file-names.ts';

describe('pathOf', () => {
  it.each([
    [{ text: '/a/b' }, '/w', '/a/b'],
    [{ text: 'a/b' }, '/w', '/w/a/b'],
    [{ text: 'a' }, '/', '/a'],
    [{ text: '../a' }, '/w', '/w/../a'],
    [{ base64: Buffer.from('x').toString('base64') }, '/w', '/w/x'],
  ])('%o below %s is %s', (path, cwd, expected) => {
    expect(pathOf(path, 'path', cwd).toString()).toBe(expected);
  });

  it.each([
    ['neither form', {}],
    ['both forms', { text: 'a', base64: 'YQ==' }],
    ['nothing', { text: '' }],
    ['NUL', { text: 'a\0' }],
    ['more than a path may have', { text: `/${'a'.repeat(PATH_BYTES_MAX)}` }],
    ['more than that below the directory', { text: 'a'.repeat(PATH_BYTES_MAX) }],
  ])('%s is refused', (_, path) => {
    expect(() => pathOf(path, 'path', '/w')).toThrow(
      expect.objectContaining({ code: 'invalid-argument', details: { field: 'path' } }),
    );
  });
});

it('shows names of any bytes', () => {
  const numbers = {
    kind: 'symlink',
    ...{ mode: 0o777, uid: 0, gid: 0, sizeBytes: 1, allocatedBytes: 0, links: 1 },
    ...{ mtimeSeconds: -1, mtimeNanoseconds: 5 },
  } satisfies Partial<FileAttributesFields>;
  const plain = entryOf({ ...numbers, name: Buffer.from('ü'), symlinkTarget: Buffer.from('t') });
  expect(plain).toEqual({ ...numbers, name: 'ü', symlinkTarget: 't' });
  const odd = Buffer.from([0xff, 0x2f]);
  expect(entryOf({ ...numbers, name: odd, symlinkTarget: odd })).toEqual({
    ...{ ...numbers, name: '\ufffd/', nameBase64: '/y8=' },
    ...{ symlinkTarget: '\ufffd/', symlinkTargetBase64: '/y8=' },
  });
});
