import { describe, expect, it } from 'vitest';
import { emptyPaxFields, parsePax } from '../../src/sources/pax.ts';
import { errorWith } from './scratch.ts';
import { type PaxRecords, paxBody, paxRecord } from './tar-encoder.ts';

function parse(records: PaxRecords, scope: 'member' | 'global' = 'member') {
  const fields = emptyPaxFields();
  parsePax(paxBody(records), fields, scope);
  return fields;
}

it('reads the records that it knows, and passes over others', () => {
  const fields = parse([
    ['path', 'a\xffb'],
    ['linkpath', 'x=y'],
    ['size', '8589934592'],
    ['uid', '65535'],
    ['gid', '4294967294'],
    ['mtime', '1700000000.123456789'],
    ['atime', 'whatever'],
    ['LIBARCHIVE.xattr.user.a', 'Yg'],
    ['SCHILY.xattr.user.a', Buffer.from([0, 10, 255])],
    ['SCHILY.xattr.user.b%3Dc%25%3D', ''],
    ['comment', ''],
    ['__proto__', 'x'],
    ['constructor', 'x'],
  ]);
  expect(fields).toEqual({
    path: 'a\xffb',
    linkPath: 'x=y',
    sizeBytes: 8_589_934_592,
    uid: 65_535,
    gid: 4_294_967_294,
    mtime: { sec: 1_700_000_000, nsec: 123_456_789 },
    xattrs: new Map([
      ['user.a', Uint8Array.from([0, 10, 255])],
      ['user.b=c%=', Uint8Array.from([])],
    ]),
    sparse: { pairs: [] },
  });
});

it('lets a later record win, and an empty one take it back', () => {
  const fields = parse([
    ['path', 'one'],
    ['path', 'two'],
    ['uid', '7'],
    ['uid', ''],
  ]);
  expect(fields.path).toBe('two');
  expect(fields).not.toHaveProperty('uid');
});

it('reads the sparse records of each version', () => {
  const { sparse } = parse([
    ['GNU.sparse.major', '1'],
    ['GNU.sparse.minor', '0'],
    ['GNU.sparse.name', 'real'],
    ['GNU.sparse.realsize', '100'],
    ['GNU.sparse.map', '0,1,5,2'],
    ['GNU.sparse.numblocks', '1'],
    ['GNU.sparse.offset', '3'],
    ['GNU.sparse.numbytes', '4'],
  ]);
  expect(sparse).toEqual({
    major: 1,
    minor: 0,
    name: 'real',
    sizeBytes: 100,
    map: '0,1,5,2',
    pairs: [3, 4],
  });
});

it('ignores what only one member can have in a global header', () => {
  const fields = parse(
    [
      ['path', 'same'],
      ['size', '5'],
      ['linkpath', 'x'],
      ['GNU.sparse.major', '1'],
      ['uid', '5'],
      ['SCHILY.xattr.user.a', '1'],
    ],
    'global',
  );
  expect(fields).toEqual({
    uid: 5,
    xattrs: new Map([['user.a', Uint8Array.from([0x31])]]),
    sparse: { pairs: [] },
  });
});

describe('times', () => {
  it.each([
    ['0', 0, 0],
    ['1', 1, 0],
    ['1.', 1, 0],
    ['1.5', 1, 500_000_000],
    ['1.0000000019', 1, 1],
    ['-1', -1, 0],
    ['-0', 0, 0],
    ['-1.25', -2, 750_000_000],
    ['-0.000000001', -1, 999_999_999],
    ['253402300800', 253_402_300_800, 0],
  ])('%s', (text, sec, nsec) => {
    expect(parse([['mtime', text]]).mtime).toEqual({ sec, nsec });
  });
});

it('makes an attribute of an ACL in text form, unless the attribute is there', () => {
  const name = 'system.posix_acl_access';
  const text = 'user::rw-,group::r--,other::r--';
  expect(parse([['SCHILY.acl.access', text]]).xattrs.get(name)?.length).toBe(28);
  const both: PaxRecords = [
    [`SCHILY.xattr.${name}`, 'raw'],
    ['SCHILY.acl.access', text],
  ];
  for (const records of [both, both.toReversed()]) {
    expect(Buffer.from(parse(records).xattrs.get(name) ?? []).toString()).toBe('raw');
  }
  expect(parse([['SCHILY.acl.default', text]]).xattrs.has('system.posix_acl_default')).toBe(true);
});

describe('what is refused', () => {
  const good = paxRecord('path', 'x').toString();
  it.each<[string, string]>([
    ['no length', 'path=x\n'],
    ['a length of 0', '0 path=x\n'],
    ['a length that ends inside its own digits', '2 \n'],
    ['a length past the end', '99 path=x\n'],
    ['a length that is too short', '8 path=x\n'],
    ['a length with a sign', '+9 path=x\n'],
    ['a huge length', '99999999999999999999 path=x\n'],
    ['no equals sign', '9 pathxx\n'],
    ['an equals sign only in the next record', `5 xx\n${good}`],
    ['no key', '5 =x\n'],
    ['a NUL in the key', '9 p\0th=x\n'],
    ['no newline', '9 path=xy'],
    ['garbage between records', `${good} ${good}`],
    ['padding inside', `${good}\0\0`],
  ])('%s', (_, body) => {
    expect(() => parsePax(Buffer.from(body), emptyPaxFields(), 'member')).toThrowError(
      errorWith('import-invalid'),
    );
  });

  it.each<[string, string, string]>([
    ['path', 'a\0b', 'import-invalid'],
    ['linkpath', '\0', 'import-invalid'],
    ['size', '-1', 'import-invalid'],
    ['size', '1e3', 'import-invalid'],
    ['size', '0x10', 'import-invalid'],
    ['size', '9007199254740992', 'import-limit'],
    ['size', '18446744073709551615', 'import-limit'],
    ['size', '9'.repeat(1000), 'import-invalid'],
    ['uid', '-2', 'import-invalid'],
    ['gid', '1.5', 'import-invalid'],
    ['mtime', '1,5', 'import-invalid'],
    ['mtime', 'Infinity', 'import-invalid'],
    ['mtime', '1'.repeat(20), 'import-invalid'],
    ['SCHILY.xattr.', 'x', 'import-invalid'],
    ['GNU.sparse.numbytes', '1', 'import-invalid'],
  ])('%s = %s', (key, value, code) => {
    expect(() => parse([[key, value]])).toThrowError(errorWith(code));
  });
});

it('ends at more attributes than a file can have a use for', () => {
  const records = (count: number): PaxRecords =>
    Array.from({ length: count }, (_, n) => [`SCHILY.xattr.user.${n}`, '']);
  expect(parse(records(256), 'global').xattrs.size).toBe(256);
  expect(() => parse(records(257), 'global')).toThrow(errorWith('import-limit', /256/));
});
