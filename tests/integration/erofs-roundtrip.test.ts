/** Random trees: what the kernel, our reader and fsck.erofs see of a layer is what went in. */
import { readFileSync, writeFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { treeDigestOfData, validateLayer } from '@dsec/erofs';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { expectedListing, feed, type Tree, trees } from './erofs-tree.ts';
import {
  fsck,
  isLong,
  isRoot,
  LIMITS,
  listHost,
  listImage,
  MANY_CASES,
  mountLayer,
  openFiles,
  openWorkshop,
  oracle,
  plain,
  withMount,
} from './erofs-world.ts';

const workshop = openWorkshop();
afterAll(() => workshop.remove());
// A tree takes long to shrink.
const parameters = { seed: 20_260_101, numRuns: isLong ? 2000 : 40, endOnFailure: isLong };
const fsckPath = oracle('fsck.erofs');
if (!isRoot) console.warn('erofs-roundtrip: no mounts, since they need root');
if (fsckPath === undefined) console.warn('erofs-roundtrip: no fsck.erofs, since it was not found');

function check(tree: Tree): void {
  const layer = workshop.build((builder) => feed(builder, tree));
  const { built, metaPath, blobPath } = layer;
  const blobs = built.blob === undefined ? [] : [blobPath];
  const expected = plain(expectedListing(tree));

  const valid = validateLayer(
    built.meta,
    { deviceBlocks: built.devices.map((d) => d.blocks) },
    LIMITS,
  );
  expect(valid.entries).toBe(Object.keys(expected).length - 1);
  const opened = openFiles(metaPath, blobs);
  try {
    expect(plain(listImage(opened.image))).toEqual(expected);
    expect(treeDigestOfData(valid, opened.image.devices)).toBe(built.treeDigest);
  } finally {
    opened.close();
  }
  if (isRoot) {
    expect(plain(withMount(mountLayer(metaPath, blobs), listHost))).toEqual(expected);
  }
  if (fsckPath !== undefined) expect(fsck(fsckPath, metaPath, blobs)).toBe('');

  const again = workshop.build((builder) => feed(builder, tree));
  expect(again.built.layerId).toBe(built.layerId);
  expect(Buffer.compare(readFileSync(again.metaPath), readFileSync(metaPath))).toBe(0);
  expect(Buffer.compare(readFileSync(again.blobPath), readFileSync(blobPath))).toBe(0);
}

describe.runIf(fsckPath !== undefined)('fsck.erofs (needs erofs-utils)', () => {
  it('tells damage', () => {
    const layer = workshop.build((b) => b.fifo('f', { ...ROOT, mode: 0o644 }));
    const bytes = Buffer.from(layer.built.meta);
    bytes.writeUInt8(0xff, 1024 + 60);
    writeFileSync(layer.metaPath, bytes);
    expect(fsck(fsckPath ?? '', layer.metaPath, [])).not.toBe('');
  });

  it('is content wherever the last inode ends', () => {
    const attributes = { ...ROOT, mode: 0o644 };
    for (let count = 30; count < 70; count += 1) {
      const fifos = workshop.build((b) => {
        for (let name = 0; name < count; name += 1) b.fifo(`${name}`, attributes);
      });
      expect(fsck(fsckPath ?? '', fifos.metaPath, [])).toBe('');
    }
    workshop.clear();
  });
});

const ROOT = { mode: 0o755, uid: 0, gid: 0, mtimeSec: 0, mtimeNsec: 0, xattrs: new Map() };

describe('a random tree', () => {
  it('is seen as it went in, and written twice gives the same bytes', MANY_CASES, async () => {
    const property = fc.asyncProperty(trees({ hides: true }), async (tree) => {
      check(tree);
      workshop.clear();
      await setImmediate();
    });
    await fc.assert(property, parameters);
  });
});
