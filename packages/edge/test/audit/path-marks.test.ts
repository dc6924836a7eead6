import { expect, test } from 'vitest';
import { differences, type PathMark, pathText } from '../../src/audit/path-marks.ts';

const mark = (changes: Partial<PathMark> = {}): PathMark => ({
  ...{ kind: 'file', links: 1, rights: '420 0:0', content: '5 1.0  abc', ...changes },
});

test('says what has happened to each path', () => {
  const before = new Map([
    ['/t', mark({ kind: 'directory' })],
    ['/t/same', mark()],
    ['/t/gone', mark()],
    ['/t/link', mark()],
    ['/t/text', mark()],
    ['/t/mode', mark()],
    ['/t/alias', mark()],
  ]);
  const after = new Map([
    ['/t', mark({ kind: 'directory' })],
    ['/t/same', mark()],
    ['/t/link', mark({ kind: 'symlink' })],
    ['/t/text', mark({ content: '5 1.0  xyz' })],
    ['/t/mode', mark({ rights: '511 0:0' })],
    ['/t/alias', mark({ links: 2 })],
    ['/t/new', mark()],
  ]);
  expect(differences(before, before)).toEqual([]);
  expect(differences(before, after).map(({ path, reason }) => `${reason} ${path}`)).toEqual([
    ...['removed /t/gone', 'replaced /t/link', 'written /t/text', 'rights /t/mode'],
    ...['linked /t/alias', 'added /t/new'],
  ]);
});

test('shows paths as text, of any bytes and length', () => {
  expect(pathText('/t\u00c3\u00a4')).toBe('/tä');
  expect(pathText(`/${'x'.repeat(5000)}`)).toHaveLength(253);
});
