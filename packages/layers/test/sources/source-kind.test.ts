import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { makeNode } from '@dsec/linux';
import { describe, expect, it } from 'vitest';
import { detectSource, refuseForeign } from '../../src/sources/source-kind.ts';
import { layer, savedImage, simpleLayout, tarOfTree, writeTree } from './image-encoder.ts';
import { errorWith, scratchDirectory } from './scratch.ts';
import { gnuLong, paxHeader, TAR_END, tarMember, tarOf } from './tar-encoder.ts';

const scratch = scratchDirectory();
let count = 0;

function put(bytes: Buffer): string {
  count += 1;
  const path = join(scratch, `${count}`);
  writeFileSync(path, bytes);
  return path;
}

const detect = (path: string) => detectSource(path);

const root = [tarMember({ name: './', type: '5' }), paxHeader([['mtime', '1.5']])];
const plain = tarOf(...root, tarMember({ name: './bin/', type: '5' }), tarMember({ name: 'x' }));
const layout = tarOfTree(simpleLayout({ layers: [layer()] }));
const saved = tarOfTree(savedImage([layer()]));
const named = (name: string) => tarOf(tarMember({ name }), tarMember({ name: 'blobs' }));

describe('tells', () => {
  it.each<[string, Buffer, string]>([
    ['a tar', plain, 'tar'],
    ['a tar with gzip', gzipSync(plain), 'tar'],
    ['an empty tar', TAR_END, 'tar'],
    ['a layout in a tar', layout, 'oci-layout'],
    ['an archive of docker', saved, 'docker-archive'],
    [
      'a layout that is an archive of docker too',
      tarOfTree(new Map([...savedImage([layer()]), ...simpleLayout({ layers: [layer()] })])),
      'oci-layout',
    ],
    ['a tar that only begins like an image', named('blobs'), 'tar'],
    [
      'a tar with a manifest somewhere',
      tarOf(tarMember({ name: 'a' }), tarMember({ name: 'manifest.json' })),
      'tar',
    ],
    [
      'a tar whose first name is long',
      tarOf(gnuLong('L', 'a/'.repeat(90)), tarMember({ name: 'a' })),
      'tar',
    ],
    ['a tar of an EROFS image', tarOf(tarMember({ name: 'i' }, erofs())), 'tar'],
  ])('%s', async (_, bytes, kind) => {
    expect(await detect(put(bytes))).toBe(kind);
  });

  it('a directory, and a layout in one', async () => {
    expect(await detect(scratch)).toBe('directory');
    expect(await detect(writeTree(join(scratch, 'l'), simpleLayout({ layers: [layer()] })))).toBe(
      'oci-layout',
    );
    expect(await detect(writeTree(join(scratch, 's'), savedImage([layer()])))).toBe('directory');
  });

  it('a pipe, without waiting for a writer', async () => {
    const path = join(scratch, 'pipe');
    makeNode(path, { mode: 0o010_600 });
    expect(await detect(path)).toBe('tar');
  });
});

function image(at: number, magic: string): Buffer {
  const bytes = Buffer.alloc(128 * 1024);
  bytes.write(magic, at, 'latin1');
  return bytes;
}

function erofs(): Buffer {
  return image(1024, '\xe2\xe1\xf5\xe0');
}

describe('refuses, and says what it is', () => {
  it.each<[string, Buffer]>([
    ['an EROFS image', erofs()],
    ['a squashfs image', image(0, 'hsqs')],
    ['an ext2, ext3 or ext4 image', image(1080, '\x53\xef')],
    ['an XFS image', image(0, 'XFSB')],
    ['a Btrfs image', image(65_600, '_BHRfS_M')],
    ['an ISO image', image(32_769, 'CD001')],
    ['a qcow2 image', image(0, 'QFI\xfb')],
    ['a VMDK image', image(0, 'KDMV')],
    ['a disk image', image(510, '\x55\xaa')],
    ['an xz file', image(0, '\xfd7zXZ\0')],
    ['a bzip2 file', image(0, 'BZh9')],
    ['a zip file', image(0, 'PK\x03\x04')],
    ['a cpio archive', image(0, '070701')],
    ['neither a tar nor a directory', Buffer.from('text')],
    ['neither a tar nor a directory', Buffer.alloc(0)],
  ])('%s', async (what, bytes) => {
    const path = put(bytes);
    const refused = errorWith('import-invalid', new RegExp(`is ${what};`));
    await expect(detect(path)).rejects.toThrowError(refused);
    expect(() => refuseForeign(openSync(path, 'r'))).toThrowError(refused);
  });

  it('a compressed image archive', async () => {
    await expect(detect(put(gzipSync(layout)))).rejects.toThrowError(
      errorWith('import-invalid', /compressed image archive/),
    );
    await expect(detect(put(gzipSync(saved)))).rejects.toThrowError(errorWith('import-invalid'));
  });

  it('what is not there', async () => {
    await expect(detect(join(scratch, 'nothing'))).rejects.toThrowError();
    mkdirSync(join(scratch, 'empty'));
    expect(await detect(join(scratch, 'empty'))).toBe('directory');
  });
});
