import { describe, expect, it } from 'vitest';
import { parseTarHeader, tarBlockKind } from '../../src/sources/tar-header.ts';
import { errorWith } from './scratch.ts';
import { base256, type HeaderFields, tarHeader, withChecksum } from './tar-encoder.ts';

const parse = (fields: Partial<HeaderFields>) =>
  parseTarHeader(tarHeader({ name: 'name', ...fields }));

it('reads every field', () => {
  const block = tarHeader({
    name: 'a/b',
    type: '2',
    mode: 0o4755,
    uid: 1000,
    gid: 65_535,
    size: 0o77777777777,
    mtime: 1_700_000_000,
    link: 'target',
  });
  expect(parseTarHeader(block)).toEqual({
    type: '2',
    name: 'a/b',
    linkName: 'target',
    mode: 0o4755,
    uid: 1000,
    gid: 65_535,
    sizeBytes: 0o77777777777,
    mtimeSec: 1_700_000_000,
    deviceMajor: 0,
    deviceMinor: 0,
  });
});

it('takes a block of zeros for no header', () => {
  expect(parseTarHeader(Buffer.alloc(512))).toBeUndefined();
});

describe('names', () => {
  const long = 'n'.repeat(100);
  it.each<[string, Partial<HeaderFields>, string]>([
    ['a field without a NUL', { name: long }, long],
    ['bytes after a NUL', { name: 'ab\0cd' }, 'ab'],
    ['bytes that are not UTF-8', { name: '\xff\xc0\x80' }, '\xff\xc0\x80'],
    ['a prefix', { name: 'file', prefix: 'some/dir' }, 'some/dir/file'],
    ['a full prefix', { name: long, prefix: 'p'.repeat(155) }, `${'p'.repeat(155)}/${long}`],
    ['no prefix in GNU form', { name: 'file', prefix: 'times', magic: 'gnu' }, 'file'],
    ['no prefix in v7 form', { name: 'file', prefix: 'x', magic: 'v7' }, 'file'],
    [
      'a star prefix, which ends where times begin',
      { name: 'file', prefix: `${'p'.repeat(131)}00000000000`, magic: 'star' },
      `${'p'.repeat(131)}/file`,
    ],
  ])('%s', (_, fields, expected) => {
    expect(parse(fields)?.name).toBe(expected);
  });
});

describe('numbers', () => {
  const field = (text: string) => Buffer.from(text, 'latin1');
  it.each<[string, Partial<HeaderFields>, object]>([
    ['blanks around digits', { uid: field('   17 \0\0') }, { uid: 15 }],
    ['no end mark', { uid: field('00000017') }, { uid: 15 }],
    ['a blank field', { uid: field('        ') }, { uid: 0 }],
    ['a field of NULs', { gid: Buffer.alloc(8) }, { gid: 0 }],
    ['garbage after the end mark', { gid: field('17\0zzzzz') }, { gid: 15 }],
    ['base 256', { size: base256(2n ** 40n + 5n, 12) }, { sizeBytes: 2 ** 40 + 5 }],
    ['a small number in base 256', { uid: base256(70_000n, 8) }, { uid: 70_000 }],
    ['a negative time', { mtime: base256(-2n, 12) }, { mtimeSec: -2 }],
    ['a very negative time', { mtime: base256(-(2n ** 50n), 12) }, { mtimeSec: -(2 ** 50) }],
    ['a negative size', { size: base256(-1n, 12) }, { sizeBytes: -1 }],
    ['2^53 - 1', { size: base256(2n ** 53n - 1n, 12) }, { sizeBytes: 2 ** 53 - 1 }],
    ['devices', { type: '3', major: 10, minor: 200 }, { deviceMajor: 10, deviceMinor: 200 }],
    ['a device field elsewhere', { type: '0', major: field('garbage!') }, { deviceMajor: 0 }],
    [
      'a device field in base 256',
      { type: '4', minor: base256(2n ** 20n, 8) },
      { deviceMinor: 2 ** 20 },
    ],
  ])('%s', (_, fields, expected) => {
    expect(parse(fields)).toMatchObject(expected);
  });

  it.each<[string, Partial<HeaderFields>]>([
    ['letters', { mode: field('0000abc\0') as never }],
    ['a digit 8', { uid: field('0000018\0') }],
    ['a sign', { uid: field('-000017\0') }],
    ['2^53', { size: base256(2n ** 53n, 12) }],
    ['2^90', { size: base256(2n ** 90n, 12) }],
    ['-2^94', { mtime: base256(-(2n ** 94n), 12) }],
  ])('refuses %s', (_, fields) => {
    const patched = { ...fields, mode: 0 };
    const patches = Buffer.isBuffer(fields.mode) ? [[100, fields.mode] as const] : [];
    const block = tarHeader({ name: 'n', ...patched, patches });
    expect(() => parseTarHeader(block)).toThrowError(errorWith('import-invalid'));
    expect(tarBlockKind(block)).toBe('other');
  });
});

describe('the checksum', () => {
  it('may be of signed characters', () => {
    const block = tarHeader({ name: '\xff\xfe' });
    const unsigned = Number.parseInt(block.toString('latin1', 148, 154), 8);
    withChecksum(block, unsigned - 512);
    expect(parseTarHeader(block)?.name).toBe('\xff\xfe');
  });

  it.each([0, 1, 0o777777])('may not be %d', (checksum) => {
    expect(() => parse({ checksum })).toThrowError(errorWith('import-invalid', /checksum/));
  });

  it('must be there in a block of otherwise zeros', () => {
    const block = Buffer.alloc(512);
    block.write('000400\0 ', 148);
    expect(parseTarHeader(block)?.name).toBe('');
    block.write('000401\0 ', 148);
    expect(() => parseTarHeader(block)).toThrowError(errorWith('import-invalid'));
  });
});

it.each<[string, Buffer, ReturnType<typeof tarBlockKind>]>([
  ['a header', tarHeader({ name: 'x' }), 'header'],
  ['a header and more', Buffer.concat([tarHeader({ name: 'x' }), Buffer.alloc(10, 1)]), 'header'],
  ['zeros', Buffer.alloc(512), 'zeros'],
  ['zeros before something', Buffer.concat([Buffer.alloc(512), Buffer.alloc(10, 1)]), 'zeros'],
  ['too little', Buffer.alloc(511), 'other'],
  ['text', Buffer.alloc(512, 'x'), 'other'],
])('tells %s', (_, bytes, kind) => {
  expect(tarBlockKind(bytes)).toBe(kind);
});

it('takes the type NUL for 0', () => {
  expect(parse({ type: '\0' })?.type).toBe('0');
});
