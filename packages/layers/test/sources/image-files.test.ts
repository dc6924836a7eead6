import { linkSync, mkdirSync, readSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { makeNode } from '@dsec/linux';
import { describe, expect, it } from 'vitest';
import {
  type ImageFile,
  openImageArchive,
  openImageDirectory,
} from '../../src/sources/image-files.ts';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { createPace } from '../../src/sources/pace.ts';
import { errorWith, scratchDirectory } from './scratch.ts';
import { gnuLong, paxHeader, TAR_END, tarMember, tarOf } from './tar-encoder.ts';

const scratch = scratchDirectory();

function textOf(file: ImageFile | undefined): string | undefined {
  if (file === undefined) return undefined;
  const bytes = Buffer.alloc(file.end - file.start);
  readSync(file.fd, bytes, 0, bytes.length, file.start);
  file.close();
  return bytes.toString();
}

describe('a directory', () => {
  const root = join(scratch, 'layout');
  mkdirSync(join(root, 'blobs/sha256'), { recursive: true });
  writeFileSync(join(root, 'blobs/sha256/file'), 'content');
  writeFileSync(join(scratch, 'secret'), 'secret');
  symlinkSync('file', join(root, 'blobs/sha256/link'));
  symlinkSync('blobs', join(root, 'linked'));
  symlinkSync('/etc/passwd', join(root, 'outside'));
  makeNode(join(root, 'pipe'), { mode: 0o010_600 });
  linkSync(join(root, 'blobs/sha256/file'), join(root, 'hard'));
  const files = openImageDirectory(root);

  it.each(['blobs/sha256/file', 'hard'])('gives %s', (name) => {
    expect(textOf(files.open(name))).toBe('content');
  });
  it.each(['nothing', 'blobs/sha256/nothing', 'nothing/at/all'])('has no %s', (name) => {
    expect(files.open(name)).toBeUndefined();
  });
  it.each([
    'blobs/sha256/link',
    'linked/sha256/file',
    'outside',
    '../secret',
    'blobs/../../secret',
    '/etc/passwd',
    'blobs',
    'pipe',
    'hard/x',
  ])('does not give %s', (name) => {
    expect(() => files.open(name)).toThrowError(errorWith('import-invalid'));
  });
});

describe('an archive', () => {
  let count = 0;
  function open(archive: Buffer, limits = IMPORT_LIMITS_DEFAULT) {
    count += 1;
    const path = join(scratch, `${count}.tar`);
    writeFileSync(path, archive);
    return openImageArchive(path, { limits, pace: createPace() });
  }
  const id = (digit: string) => digit.repeat(64);
  const archive = tarOf(
    tarMember({ name: './index.json' }, 'index'),
    tarMember({ name: 'blobs/', type: '5' }),
    tarMember({ name: 'blobs/sha256/', type: '5' }),
    gnuLong('L', `blobs/sha256/${id('a')}`),
    tarMember({ name: 'cut' }, 'a'.repeat(2000)),
    tarMember({ name: 'twice' }, 'one'),
    tarMember({ name: 'twice' }, 'two'),
    tarMember({ name: 'link', type: '2', link: 'twice' }),
    tarMember({ name: 'hard', type: '1', link: 'twice' }),
    tarMember({ name: `${id('1')}/layer.tar` }, 'layer'),
    tarMember({ name: `${id('2')}/layer.tar`, type: '2', link: `../${id('1')}/layer.tar` }),
    tarMember({ name: `${id('3')}/layer.tar`, type: '2', link: `../${id('2')}/layer.tar` }),
    tarMember({ name: `${id('4')}/layer.tar`, type: '2', link: '../../../etc/passwd' }),
    tarMember({ name: `${id('5')}/layer.tar`, type: '2', link: `../${id('9')}/layer.tar` }),
    tarMember({ name: `${id('6')}.tar` }, 'podman'),
    tarMember({ name: `${id('6')}/layer.tar`, type: '2', link: `../${id('6')}.tar` }),
    paxHeader([
      ['GNU.sparse.size', '100'],
      ['GNU.sparse.map', '0,5'],
    ]),
    tarMember({ name: 'sparse' }, 'abcde'),
  );

  it.each([
    ['index.json', 'index'],
    [`blobs/sha256/${id('a')}`, 'a'.repeat(2000)],
    ['twice', 'two'],
    [`${id('1')}/layer.tar`, 'layer'],
    [`${id('2')}/layer.tar`, 'layer'],
    [`${id('6')}/layer.tar`, 'podman'],
    ['nothing', undefined],
    [`${id('5')}/layer.tar`, undefined],
  ])('gives %s', async (name, content) => {
    const files = await open(archive);
    expect(textOf(files.open(name))).toBe(content);
    files.close();
  });

  it.each(['link', 'hard', 'blobs', 'sparse', `${id('3')}/layer.tar`, `${id('4')}/layer.tar`])(
    'does not give %s',
    async (name) => {
      const files = await open(archive);
      expect(() => files.open(name)).toThrowError(errorWith('import-invalid'));
      files.close();
    },
  );

  it.each<[string, Buffer, RegExp]>([
    ['compressed with gzip', gzipSync(archive), /gunzip it first/],
    ['compressed with zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0]), /unzstd it first/],
    ['cut', archive.subarray(0, 3000), /too early/],
    ['with a name that leads outside', tarOf(tarMember({ name: '../x' })), /\.\./],
    ['that is none', Buffer.alloc(2000, 'x'), /checksum/],
  ])('%s is refused', async (_, bytes, message) => {
    await expect(open(bytes)).rejects.toThrowError(errorWith('import-invalid', message));
  });

  it('has a limit on its members', async () => {
    const limits = { ...IMPORT_LIMITS_DEFAULT, imageArchiveMembersMax: 3 };
    const names = (n: number) => Array.from({ length: n }, (_, i) => tarMember({ name: `${i}` }));
    (await open(tarOf(...names(3)), limits)).close();
    await expect(open(tarOf(...names(4)), limits)).rejects.toThrowError(errorWith('import-limit'));
  });

  it('is a regular file', async () => {
    await expect(
      openImageArchive(scratch, { limits: IMPORT_LIMITS_DEFAULT, pace: createPace() }),
    ).rejects.toThrowError(errorWith('invalid-argument'));
    (await open(TAR_END)).close();
  });
});
