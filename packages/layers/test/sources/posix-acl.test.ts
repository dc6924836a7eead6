import { expect, it } from 'vitest';
import { aclFromText } from '../../src/sources/posix-acl.ts';
import { errorWith } from './scratch.ts';

/** Version 2, then tag, rights and id of each entry. */
function acl(...entries: [tag: number, rights: number, id: number][]): string {
  const bytes = Buffer.alloc(4 + 8 * entries.length);
  bytes.writeUInt32LE(2, 0);
  entries.forEach(([tag, rights, id], i) => {
    bytes.writeUInt16LE(tag, 4 + 8 * i);
    bytes.writeUInt16LE(rights, 6 + 8 * i);
    bytes.writeUInt32LE(id >>> 0, 8 + 8 * i);
  });
  return bytes.toString('hex');
}

it.each<[string, string, string]>([
  [
    'the plain rights',
    'user::rwx,group::r-x,other::---',
    acl([1, 7, -1], [4, 5, -1], [0x20, 0, -1]),
  ],
  [
    'named entries, in the order of the kernel',
    'group::r--\nuser::rw-\nuser:1000:r--\nuser:7:rw-\ngroup:50:--x\nmask::rw-\nother::r--\n',
    acl([1, 6, -1], [2, 6, 7], [2, 4, 1000], [4, 4, -1], [8, 1, 50], [0x10, 6, -1], [0x20, 4, -1]),
  ],
  ["star's numeric ids", 'user:alice:rwx:1001', acl([2, 7, 1001])],
  ['comments and blanks', '# owner: x\nuser::r-- #effective:r--\n\n', acl([1, 4, -1])],
])('encodes %s', (_, text, expected) => {
  expect(Buffer.from(aclFromText(text)).toString('hex')).toBe(expected);
});

it.each([
  'user:alice:rwx',
  'user:-1:rwx',
  'user:10000000000:rwx',
  'owner::rwx',
  '__proto__::rwx',
  'mask:5:rwx',
  'user::rw',
  'user::rwX',
  'user',
  ':::',
])('refuses %s', (text) => {
  expect(() => aclFromText(text)).toThrowError(errorWith('import-invalid'));
});
