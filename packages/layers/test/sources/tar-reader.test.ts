import { describe, expect, it } from 'vitest';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { createTarReader } from '../../src/sources/tar-reader.ts';
import {
  base256,
  gnuLong,
  memorySource,
  paxHeader,
  tarHeader,
  tarMember,
  tarOf,
} from './tar-encoder.ts';
import { readMembers as read, refusesArchive as refuses } from './tar-members.ts';

const limits = IMPORT_LIMITS_DEFAULT;

describe('members', () => {
  it.each<[string, Buffer, object]>([
    [
      'a file',
      tarMember({ name: './f', mode: 0o104755, uid: 1, gid: 2, mtime: 3 }, 'hello'),
      {
        kind: 'file',
        path: 'f',
        sizeBytes: 5,
        content: 'hello',
        attributes: { mode: 0o4755, uid: 1, gid: 2, mtimeSec: 3, mtimeNsec: 0, xattrs: new Map() },
      },
    ],
    ['a contiguous file', tarMember({ name: 'f', type: '7' }, 'x'), { kind: 'file', content: 'x' }],
    ['a v7 file', tarMember({ name: 'f', type: '\0', magic: 'v7' }, 'x'), { content: 'x' }],
    [
      'a v7 directory',
      tarMember({ name: 'd/', type: '\0', magic: 'v7' }),
      { kind: 'directory', path: 'd' },
    ],
    [
      'a directory',
      tarMember({ name: 'd/', type: '5', mode: 0o1777 }),
      { kind: 'directory', path: 'd' },
    ],
    [
      'a directory with a size',
      tarHeader({ name: 'd', type: '5', size: 4096 }),
      { kind: 'directory' },
    ],
    ['a dump directory', tarMember({ name: 'd', type: 'D' }, 'Yfile\0\0'), { kind: 'directory' }],
    ['the root', tarMember({ name: './', type: '5' }), { kind: 'directory', path: '' }],
    [
      'a symbolic link',
      tarMember({ name: 'l', type: '2', link: '../x/', mode: 0o644 }),
      { kind: 'symlink', target: '../x/', attributes: { mode: 0o777 } },
    ],
    [
      'a hard link',
      tarMember({ name: 'h', type: '1', link: './a//b' }),
      { kind: 'hardlink', target: 'a/b' },
    ],
    [
      'a character device',
      tarMember({ name: 'c', type: '3', major: 1, minor: 3 }),
      { kind: 'device', device: { kind: 'char', major: 1, minor: 3 } },
    ],
    [
      'a block device',
      tarMember({ name: 'b', type: '4', major: 259, minor: base256(300_000n, 8) }),
      { kind: 'device', device: { kind: 'block', major: 259, minor: 300_000 } },
    ],
    ['a FIFO', tarMember({ name: 'p', type: '6' }), { kind: 'fifo' }],
  ])('%s', async (_, bytes, expected) => {
    const after = tarMember({ name: 'after' }, 'z');
    const members = await read(tarOf(bytes, after));
    expect(members[0]).toMatchObject(expected);
    expect(members.slice(1)).toMatchObject([{ path: 'after', content: 'z' }]);
  });

  it('does not care how the bytes come', async () => {
    const archive = tarOf(
      paxHeader([['path', 'p'.repeat(700)]]),
      tarMember({ name: 'x' }, 'a'.repeat(1000)),
      tarMember({ name: 'y' }, 'b'.repeat(513)),
    );
    const expected = await read(archive);
    for (const piece of [1, 511, 512, 513])
      expect(await read(archive, limits, piece)).toEqual(expected);
  });

  it('passes over content that is not read', async () => {
    const archive = tarOf(tarMember({ name: 'a' }, 'x'.repeat(700)), tarMember({ name: 'b' }, 'y'));
    const reader = createTarReader(memorySource(archive), limits);
    expect((await reader.next())?.path).toBe('a');
    expect(reader.body).toMatchObject({ start: 512, bytes: 700 });
    expect((await reader.next())?.path).toBe('b');
    expect(await reader.next()).toBeUndefined();
  });
});

describe('extended headers', () => {
  it('describe the next member alone', async () => {
    const members = await read(
      tarOf(
        paxHeader([
          ['path', 'long/name'],
          ['size', '3'],
          ['uid', '100000'],
          ['mtime', '1.5'],
          ['SCHILY.xattr.user.a', 'v'],
        ]),
        tarMember({ name: 'short', size: 0, uid: 7 }),
        Buffer.concat([Buffer.from('abc'), Buffer.alloc(509)]),
        tarMember({ name: 'next', uid: 7 }),
      ),
    );
    expect(members).toMatchObject([
      {
        path: 'long/name',
        content: 'abc',
        attributes: { uid: 100_000, mtimeSec: 1, mtimeNsec: 500_000_000 },
      },
      { path: 'next', attributes: { uid: 7, mtimeSec: 0, xattrs: new Map() } },
    ]);
    expect(members[0]?.attributes.xattrs.size).toBe(1);
  });

  it('for all members last until they are replaced or taken back', async () => {
    const members = await read(
      tarOf(
        paxHeader(
          [
            ['uid', '5'],
            ['gid', '6'],
            ['SCHILY.xattr.user.g', 'g'],
          ],
          'g',
        ),
        tarMember({ name: 'a', uid: 1, gid: 2 }),
        paxHeader([
          ['uid', '9'],
          ['SCHILY.xattr.user.l', 'l'],
        ]),
        tarMember({ name: 'b' }),
        paxHeader(
          [
            ['uid', ''],
            ['comment', 'a commit id'],
          ],
          'g',
        ),
        tarMember({ name: 'c', uid: 1 }),
      ),
    );
    expect(
      members.map(({ attributes: { uid, gid, xattrs } }) => [uid, gid, ...xattrs.keys()]),
    ).toEqual([
      [5, 6, 'user.g'],
      [9, 6, 'user.g', 'user.l'],
      [1, 6, 'user.g'],
    ]);
  });

  it('of Solaris are read like those of pax', async () => {
    const members = await read(tarOf(paxHeader([['path', 'n']], 'X'), tarMember({ name: 'x' })));
    expect(members).toMatchObject([{ path: 'n' }]);
  });

  it('of GNU tar hold long names and targets', async () => {
    const name = `dir/${'n'.repeat(200)}`;
    const target = 't'.repeat(300);
    const members = await read(
      tarOf(
        gnuLong('K', target),
        gnuLong('L', name),
        tarMember({ name: 'cut', type: '2', link: 'cut', magic: 'gnu' }),
        tarMember({ name: 'next' }),
      ),
    );
    expect(members).toMatchObject([{ path: name, target }, { path: 'next' }]);
  });

  it('of both kinds: the long name wins, and the last pax header counts', async () => {
    const members = await read(
      tarOf(
        paxHeader([
          ['path', 'first'],
          ['uid', '3'],
        ]),
        paxHeader([['path', 'second']]),
        gnuLong('L', 'gnu'),
        tarMember({ name: 'x' }),
      ),
    );
    expect(members).toMatchObject([{ path: 'gnu', attributes: { uid: 0 } }]);
  });

  it('that are empty, or say what only a sparse file has, change no name', async () => {
    const members = await read(
      tarOf(
        gnuLong('L', ''),
        gnuLong('K', ''),
        tarMember({ name: 'a', type: '2', link: 't' }),
        paxHeader([
          ['GNU.sparse.name', 'other'],
          ['GNU.sparse.size', '100'],
        ]),
        tarMember({ name: 'b' }, 'x'),
        paxHeader([['GNU.sparse.name', 'other']]),
        tarMember({ name: 'c', type: '5' }),
      ),
    );
    expect(members).toMatchObject([
      { path: 'a', target: 't' },
      { path: 'b', sizeBytes: 1 },
      { path: 'c' },
    ]);
  });

  it('may not be too many, too long, or the last thing', async () => {
    const many = Array.from({ length: 17 }, () => paxHeader([['path', 'x']]));
    await refuses(tarOf(...many, tarMember({ name: 'x' })), 'import-invalid', /too many/);
    const small = { ...limits, paxBytesMax: 1000 };
    const long = paxHeader([['comment', 'c'.repeat(1000)]]);
    await refuses(tarOf(long, tarMember({ name: 'x' })), 'import-limit', undefined, small);
    const globals = Array.from({ length: 4 }, () => paxHeader([['comment', 'c'.repeat(300)]], 'g'));
    await refuses(tarOf(...globals, tarMember({ name: 'x' })), 'import-limit', undefined, small);
    await refuses(tarOf(paxHeader([['path', 'x']])), 'import-invalid', /no member after it/);
    await refuses(paxHeader([['path', 'x']]), 'import-invalid', /no member after it/);
    await refuses(tarOf(tarMember({ name: 'x', type: 'L', size: 2 ** 32 })), 'import-limit');
  });
});

describe('sparse files', () => {
  const sparseContent = '2\n10\n3\n100\n2\n'.padEnd(512, '\0');
  it.each<[string, Buffer[]]>([
    [
      'pax 1.0',
      [
        paxHeader([
          ['GNU.sparse.major', '1'],
          ['GNU.sparse.minor', '0'],
          ['GNU.sparse.name', 'real'],
          ['GNU.sparse.realsize', '200'],
        ]),
        tarMember({ name: 'GNUSparseFile.1/x' }, `${sparseContent}abcde`),
      ],
    ],
    [
      'pax 0.1',
      [
        paxHeader([
          ['GNU.sparse.size', '200'],
          ['GNU.sparse.name', 'real'],
          ['GNU.sparse.map', '10,3,100,2,200,0'],
        ]),
        tarMember({ name: 'x' }, 'abcde'),
      ],
    ],
    [
      'pax 0.0',
      [
        paxHeader([
          ['GNU.sparse.size', '200'],
          ['GNU.sparse.numblocks', '2'],
          ['GNU.sparse.offset', '10'],
          ['GNU.sparse.numbytes', '3'],
          ['GNU.sparse.offset', '100'],
          ['GNU.sparse.numbytes', '2'],
        ]),
        tarMember({ name: 'real' }, 'abcde'),
      ],
    ],
  ])('%s', async (_, parts) => {
    const members = await read(tarOf(...parts, tarMember({ name: 'next' }, 'z')));
    expect(members).toMatchObject([
      { path: 'real', sizeBytes: 200, content: '<10>abc<87>de<98>' },
      { path: 'next', content: 'z' },
    ]);
  });
});

describe('hard links with a size', () => {
  it('have no body when a header or the end follows', async () => {
    const link = tarHeader({ name: 'h', type: '1', link: 'a', size: 5 });
    expect(await read(tarOf(link, tarMember({ name: 'b' }, 'x')))).toMatchObject([
      { kind: 'hardlink' },
      { path: 'b', content: 'x' },
    ]);
    expect(await read(tarOf(link))).toHaveLength(1);
    expect(await read(link, limits, undefined, 'optional')).toHaveLength(1);
  });

  it('have one otherwise, which is passed over', async () => {
    const link = tarMember({ name: 'h', type: '1', link: 'a' }, 'the content again');
    expect(await read(tarOf(link, tarMember({ name: 'b' }, 'x')))).toMatchObject([
      { kind: 'hardlink', target: 'a' },
      { path: 'b', content: 'x' },
    ]);
  });
});

describe('what is refused', () => {
  it.each<[string, Buffer, string]>([
    ['a wrong checksum', tarMember({ name: 'a', checksum: 5 }), 'import-invalid'],
    ['text', Buffer.alloc(2048, 'no tar at all. '), 'import-invalid'],
    ['a name with ..', tarMember({ name: 'a/../../b' }), 'import-invalid'],
    ['a hard link to ..', tarMember({ name: 'h', type: '1', link: '../a' }), 'import-invalid'],
    ['content in a v7 directory', tarMember({ name: 'd/' }, 'x'), 'import-invalid'],
    ['a negative size', tarMember({ name: 'a', size: base256(-512n, 12) }), 'import-invalid'],
    [
      'a negative extended header',
      tarMember({ name: 'a', type: 'x', size: base256(-1n, 12) }),
      'import-invalid',
    ],
    ['a multi-volume continuation', tarMember({ name: 'a', type: 'M' }), 'import-invalid'],
    ['an unknown type', tarMember({ name: 'a', type: 'Z' }), 'import-invalid'],
    ['a type that is no letter', tarMember({ name: 'a', type: '\x1b' }), 'import-invalid'],
  ])('%s', async (_, bytes, code) => {
    await refuses(tarOf(bytes), code);
  });

  it('paths and headers beyond the limits', async () => {
    const long = tarOf(gnuLong('L', 'n/'.repeat(2049)), tarMember({ name: 'x' }));
    await refuses(long, 'import-limit');
    const longLink = tarOf(gnuLong('K', 'n/'.repeat(2049)), tarMember({ name: 'x', type: '1' }));
    await refuses(longLink, 'import-limit');
    const three = { ...limits, headersMax: 3 };
    const headers = [paxHeader([]), paxHeader([], 'g'), tarMember({ name: 'a' })];
    expect(await read(tarOf(...headers), three)).toHaveLength(1);
    const more = tarOf(...headers, tarMember({ name: 'b' }));
    await refuses(more, 'import-limit', undefined, three);
  });
});

it('passes over the label of a volume', async () => {
  const label = tarMember({ name: 'backup of today', type: 'V' }, 'label');
  expect(await read(tarOf(label, tarMember({ name: 'a' })))).toMatchObject([{ path: 'a' }]);
});
