/**
 * An image's layers give the tree that they give when they are unpacked one over the other, by the rule of
 * OCI.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import {
  addImage,
  type ImageTree,
  type LayerFields,
  layer,
  layoutOf,
  OCI,
  savedImage,
  writeTar,
  writeTree,
} from '../../packages/layers/test/sources/image-encoder.ts';
import { paxHeader, tarMember } from '../../packages/layers/test/sources/tar-encoder.ts';
import { isRoot } from './erofs-world.ts';
import { buildSource, comparable, listHost } from './sources-world.ts';

const work = mkdtempSync(join(tmpdir(), 'dsec-sources-images-'));
afterAll(() => rmSync(work, { recursive: true, force: true }));
if (!isRoot) console.warn('sources-images: skipped, since unpacking owners needs root');

const directory = (name: string, mode = 0o755) => tarMember({ name, type: '5', mode, mtime: 1e9 });
const file = (name: string, content: string, uid = 0) =>
  tarMember({ name, uid, mtime: 1.1e9 }, content);
const whiteout = (name: string) => tarMember({ name });

const layers: LayerFields[] = [
  layer(
    directory('./', 0o755),
    directory('etc'),
    file('etc/passwd', 'root:x:0:0'),
    file('etc/gone', 'x'),
    directory('var'),
    directory('var/cache'),
    file('var/cache/a', 'a'),
    file('var/cache/b', 'b'),
    tarMember({ name: 'bin', type: '2', link: 'usr/bin', mtime: 1e9 }),
    directory('usr'),
    directory('usr/bin'),
    file('usr/bin/tool', 'v1', 7),
    tarMember({ name: 'usr/bin/alias', type: '1', link: 'usr/bin/tool' }),
    directory('opt'),
    directory('opt/deep'),
    file('opt/deep/f', 'f'),
  ),
  // Archivers describe every directory that they changed something in, so that it gets its time back.
  layer(
    directory('etc'),
    whiteout('etc/.wh.gone'),
    directory('var'),
    directory('var/cache', 0o700),
    // Whatever its place in the archive, the mark hides the layers below and not this one.
    file('var/cache/c', 'c'),
    tarMember({ name: 'var/cache/.wh..wh..opq' }),
    directory('usr'),
    directory('usr/bin'),
    file('usr/bin/tool', 'v2'),
    whiteout('.wh.opt'),
  ),
  layer(
    directory('./', 0o711),
    directory('opt'),
    directory('usr'),
    directory('usr/bin'),
    paxHeader([['mtime', '1200000000.5']]),
    file('opt/new', 'n'),
    file('etc-file', 'x'),
    whiteout('usr/bin/.wh.alias'),
    whiteout('.wh.never-was'),
  ),
];

/** Removes what a layer's whiteouts name, then unpacks the rest of it: the specification's two steps. */
function applyByHand(): string {
  const root = join(work, 'by-hand');
  mkdirSync(root, 0o755);
  for (const { bytes } of layers) {
    const archive = join(work, 'layer.tar');
    writeFileSync(archive, bytes);
    const names = execFileSync('tar', ['-tf', archive], { encoding: 'utf8' }).trim().split('\n');
    for (const name of names.filter((each) => basename(each).startsWith('.wh.'))) {
      const parent = join(root, dirname(name));
      const isOpaque = basename(name) === '.wh..wh..opq';
      const hidden = isOpaque
        ? existsSync(parent)
          ? readdirSync(parent)
          : []
        : [basename(name).slice(4)];
      for (const each of hidden) rmSync(join(parent, each), { recursive: true, force: true });
    }
    const options = ['-p', '--numeric-owner', '--exclude=.wh.*', '--delay-directory-restore'];
    execFileSync('tar', ['-xf', archive, '-C', root, ...options]);
  }
  return root;
}

const packed: LayerFields[] = [
  layers[0] ?? layer(),
  {
    bytes: gzipSync(layers[1]?.bytes ?? ''),
    tar: layers[1]?.bytes ?? Buffer.alloc(0),
    mediaType: OCI.gzip,
  },
  {
    bytes: execFileSync('zstd', ['-qc'], { input: layers[2]?.bytes }),
    tar: layers[2]?.bytes ?? Buffer.alloc(0),
    mediaType: OCI.zstd,
  },
];

function layout(): ImageTree {
  const tree: ImageTree = new Map();
  return layoutOf(tree, [addImage(tree, { layers: packed })]);
}

describe.runIf(isRoot)('an image of three layers (needs root)', () => {
  const root = isRoot ? applyByHand() : '';

  it.each<[string, () => string, 'oci-layout' | 'docker-archive']>([
    ['in a layout', () => writeTree(join(work, 'layout'), layout()), 'oci-layout'],
    ['in a layout in a tar', () => writeTar(join(work, 'layout.tar'), layout()), 'oci-layout'],
    [
      'in an archive of docker',
      () => writeTar(join(work, 'saved.tar'), savedImage(packed)),
      'docker-archive',
    ],
  ])('%s', async (_, make, kind) => {
    const { info, listing } = await buildSource(work, { kind: 'auto', path: make() });
    expect(info.kind).toBe(kind);
    expect(comparable(listing)).toEqual(comparable(listHost(root)));
  });
});
