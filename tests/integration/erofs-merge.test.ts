/** Stacks of random trees: the merge of their metadata shows what overlayfs shows of the stack. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { mergeLayers, validateLayer } from '@dsec/erofs';
import { type MountFd, mountOverlay } from '@dsec/linux';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { feed, type Listing, type Tree, trees } from './erofs-tree.ts';
import {
  fsck,
  isLong,
  isRoot,
  type LayerFiles,
  LIMITS,
  listHost,
  MANY_CASES,
  mountLayer,
  openWorkshop,
  oracle,
  plain,
  withMount,
} from './erofs-world.ts';

const workshop = openWorkshop();
afterAll(() => workshop.remove());
// A stack takes long to shrink and is small as it is.
const parameters = { seed: 20_260_102, numRuns: isLong ? 2000 : 30, endOnFailure: true };
const fsckPath = oracle('fsck.erofs');
if (!isRoot) console.warn('erofs-merge: skipped, since mounting needs root');

const names = ['a', 'b', 'c', '!', 'zz'];
const base = trees({ hides: false, names });
const diff = trees({ hides: true, names });

/** Overlayfs takes the link count of a file from its layer and gives merged directories none. */
function comparable(listing: Listing): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(plain(listing)).map(([path, { nlink: _, ...shown }]) => [path, shown]),
  );
}

interface Stacked {
  readonly metaPath: string;
  readonly blobPaths: readonly string[];
}

/** Bottom first. */
function listStack(stack: readonly Stacked[]): Record<string, unknown> {
  const mounts = stack.map(({ metaPath, blobPaths }) => mountLayer(metaPath, blobPaths));
  try {
    const [only] = mounts;
    const overlay: MountFd =
      mounts.length === 1 && only !== undefined
        ? only
        : mountOverlay({ form: 'descriptor', lower: [...mounts].reverse() });
    return comparable(withMount(overlay, listHost));
  } finally {
    for (const mount of mounts) mount.close();
  }
}

let merges = 0;
function merge(layers: readonly LayerFiles[], stripWhiteouts: boolean): Stacked {
  const valid = layers.map(({ built }) => validateLayer(built.meta, {}, LIMITS));
  const merged = mergeLayers(valid, { stripWhiteouts, metaBytesMax: LIMITS.metaBytesMax });
  validateLayer(merged.meta, { deviceBlocks: merged.devices.map((d) => d.blocks) }, LIMITS);
  merges += 1;
  const metaPath = join(workshop.path, `merged${merges}.meta`);
  writeFileSync(metaPath, merged.meta);
  const pathOf = new Map(layers.map((l) => [l.built.blob?.blobId, l.blobPath]));
  const blobPaths = merged.devices.map((device) => pathOf.get(device.blobId) ?? 'missing');
  if (fsckPath !== undefined) expect(fsck(fsckPath, metaPath, blobPaths)).toBe('');
  return { metaPath, blobPaths };
}

function stacked({ built, metaPath, blobPath }: LayerFiles): Stacked {
  return { metaPath, blobPaths: built.blob === undefined ? [] : [blobPath] };
}

function check(bottom: Tree, above: readonly Tree[]): void {
  const layers = [bottom, ...above].map((tree) => workshop.build((b) => feed(b, tree)));
  const byKernel = listStack(layers.map(stacked));
  expect(listStack([merge(layers, true)])).toEqual(byKernel);
  const [first, ...rest] = layers as [LayerFiles, ...LayerFiles[]];
  expect(listStack([stacked(first), merge(rest, false)])).toEqual(byKernel);
}

describe.runIf(isRoot)('a stack of layers (needs root)', () => {
  it('merges into what overlayfs shows of it', MANY_CASES, async () => {
    const stacks = fc.array(diff, { minLength: 1, maxLength: 3 });
    const property = fc.asyncProperty(base, stacks, async (bottom, above) => {
      check(bottom, above);
      workshop.clear();
      await setImmediate();
    });
    await fc.assert(property, parameters);
  });
});
