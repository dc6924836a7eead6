/**
 * Images that mkfs.erofs made of a directory: our reader sees what the kernel sees, and can encode them
 * again.
 */
import { spawnSync } from 'node:child_process';
import {
  linkSync,
  lutimesSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { reencode, validateLayer } from '@dsec/erofs';
import { setXattr } from '@dsec/linux';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bytesOfRun, type Listing } from './erofs-tree.ts';
import {
  isRoot,
  LIMITS,
  listHost,
  listImage,
  mountLayer,
  openFiles,
  openWorkshop,
  oracle,
  plain,
  withMount,
} from './erofs-world.ts';

const workshop = openWorkshop();
afterAll(() => workshop.remove());
const mkfsPath = oracle('mkfs.erofs') ?? '';
const canRun = isRoot && mkfsPath !== '';
if (!canRun) console.warn('erofs-foreign: skipped, since it needs root and mkfs.erofs');

const source = join(workshop.path, 'source');
beforeAll(() => {
  const data = (length: number, seed: number) => bytesOfRun({ kind: 'data', length, seed });
  mkdirSync(join(source, 'wide'), { recursive: true });
  for (const length of [0, 1, 100, 4095, 4096, 4097, 65_536, 200_000, 2_500_000]) {
    writeFileSync(join(source, `file${length}`), data(length, length + 1));
  }
  for (let index = 0; index < 600; index += 1)
    writeFileSync(join(source, 'wide', `n${index}`), `${index}`);
  linkSync(join(source, 'file100'), join(source, 'wide', 'link'));
  symlinkSync('somewhere/else', join(source, 'symlink'));
  symlinkSync('x'.repeat(4000), join(source, 'long-symlink'));
  writeFileSync(join(source, 'sparse'), 'x');
  truncateSync(join(source, 'sparse'), 1_000_000);
  if (isRoot) setXattr(join(source, 'file100'), 'user.note', Buffer.from('kept'));
  lutimesSync(join(source, 'symlink'), 5, 5);
});

/** Link counts of directories are the only thing that an encoding may choose. */
function comparable(listing: Listing): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(plain(listing)).map(([path, { nlink, ...shown }]) => [
      path,
      shown.kind === 'directory' ? shown : { ...shown, nlink },
    ]),
  );
}

describe.runIf(canRun)('an image by mkfs.erofs (needs root and mkfs.erofs)', () => {
  it.each([
    ['with extended inodes', ['-Eforce-inode-extended']],
    ['with compact inodes of one time', ['-Eforce-inode-compact', '-T1234567']],
    ['with inline data', ['-T99']],
    ['without inline data', ['-Enoinline_data']],
    ['in chunks of 4 KiB', ['--chunksize=4096']],
    ['in chunks of 128 KiB', ['--chunksize=131072', '-Eforce-chunk-indexes']],
    ['in chunks on a blob', ['--chunksize=65536', `--blobdev=${join(workshop.path, 'blob')}`]],
  ])('%s is read as the kernel reads it', (_, options) => {
    const imagePath = join(workshop.path, 'image');
    const blobPath = join(workshop.path, 'blob');
    rmSync(imagePath, { force: true });
    const made = spawnSync(mkfsPath, ['-x1', ...options, imagePath, source], { encoding: 'utf8' });
    expect(`${made.status} ${made.stderr}`).toMatch(/^0/);
    const blobs = options.some((option) => option.startsWith('--blobdev')) ? [blobPath] : [];

    const { image, close } = openFiles(imagePath, blobs);
    const byKernel = withMount(mountLayer(imagePath, blobs), listHost);
    expect(plain(listImage(image))).toEqual(plain(byKernel));

    const again = workshop.build((b) => reencode(image, b, LIMITS), { whiteouts: 'apply' });
    close();
    validateLayer(again.built.meta, {}, LIMITS);
    expect(comparable(withMount(mountLayer(again.metaPath, [again.blobPath]), listHost))).toEqual(
      comparable(byKernel),
    );
  });

  it('in compressed form is refused', () => {
    const imagePath = join(workshop.path, 'compressed');
    const made = spawnSync(mkfsPath, ['-zlz4', imagePath, source], { encoding: 'utf8' });
    expect(made.status).toBe(0);
    const { image, close } = openFiles(imagePath, []);
    expect(() => listImage(image)).toThrow(expect.objectContaining({ code: 'layer-invalid' }));
    close();
  });

  it('is never taken for a layer', () => {
    const imagePath = join(workshop.path, 'plain');
    spawnSync(mkfsPath, [
      '--chunksize=65536',
      `--blobdev=${join(workshop.path, 'b')}`,
      imagePath,
      source,
    ]);
    const { image, close } = openFiles(imagePath, []);
    const meta = image.meta.read(0, image.meta.sizeBytes);
    close();
    expect(() => validateLayer(meta, {}, LIMITS)).toThrow('not one of ours');
  });
});
