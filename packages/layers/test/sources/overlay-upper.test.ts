import { expect, it } from 'vitest';
import { takeOverlayMarks } from '../../src/sources/overlay-upper.ts';
import { errorWith } from './scratch.ts';

const xattrs = (entries: Record<string, string>) =>
  new Map(Object.entries(entries).map(([name, value]) => [name, Buffer.from(value)]));

it('takes overlay marks out and leaves the rest', () => {
  const map = xattrs({
    'trusted.overlay.opaque': 'y',
    'trusted.overlay.origin': 'x',
    'trusted.overlay.impure': 'y',
    'trusted.overlay.nlink': 'U+1',
    'trusted.overlay.uuid': 'x',
    'user.overlay.redirect': 'planted by the sandbox, no mark',
    'user.a': '1',
  });
  expect(takeOverlayMarks('d', map, 'trusted')).toEqual({ opaque: true });
  expect([...map.keys()]).toEqual(['user.overlay.redirect', 'user.a']);
});

it('reads the marks of a mount with userxattr', () => {
  const map = xattrs({ 'user.overlay.opaque': 'y', 'user.overlay.origin': 'x' });
  expect(takeOverlayMarks('d', map, 'user')).toEqual({ opaque: true });
  expect(map.size).toBe(0);
  expect(takeOverlayMarks('d', xattrs({ 'user.a': '' }), 'user')).toEqual({ opaque: false });
});

it.each([
  ['redirect', '/elsewhere', /redirect_dir=nofollow/],
  ['metacopy', '', /metacopy=off/],
  ['whiteout', '', /form of a file/],
  ['opaque', 'x', /opaque in a form/],
  ['opaque', '', /opaque in a form/],
])('refuses %s = "%s"', (mark, value, why) => {
  const map = xattrs({ [`trusted.overlay.${mark}`]: value });
  expect(() => takeOverlayMarks('d', map, 'trusted')).toThrowError(
    errorWith('import-invalid', why),
  );
});
