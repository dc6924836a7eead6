/**
 * Damaged and hostile EROFS images: a typed refusal in bounded work, and nothing that only the kernel would
 * see.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import {
  type BuilderLimits,
  type ByteSource,
  type ErofsImage,
  memorySource,
  mergeLayers,
  openErofs,
  readContent,
  readLink,
  readXattrs,
  reencode,
  validateLayer,
  walkImage,
} from '@dsec/erofs';
import { createSeededRandom, DsecError, type Random } from '@dsec/std';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { build } from '../../packages/erofs/test/support/layers.ts';
import { reseal } from '../../packages/erofs/test/support/patch.ts';
import { feed, trees } from '../integration/erofs-tree.ts';
import {
  isLong,
  isRoot,
  type LayerFiles,
  listHost,
  listImage,
  MANY_CASES,
  mountLayer,
  openFiles,
  openWorkshop,
  plain,
  withMount,
} from '../integration/erofs-world.ts';

const SEED = 20_260_103;
const ROUNDS = isLong ? 20_000 : 1000;
const limits: BuilderLimits = {
  entriesMax: 2000,
  contentBytesMax: 2 ** 32,
  fileBytesMax: 2 ** 32,
  depthMax: 50,
  xattrBytesPerInodeMax: 2 ** 17,
  xattrBytesMax: 2 ** 22,
  metaBytesMax: 2 ** 24,
  memoryBytesMax: 2 ** 30,
};

const workshop = openWorkshop();
afterAll(() => workshop.remove());
if (!isRoot) console.warn('erofs fuzz: accepted images are not mounted, since that needs root');

/** Some trees of a good size, and their blobs. */
const originals: readonly LayerFiles[] = fc
  .sample(trees({ hides: true }), { seed: SEED, numRuns: 200 })
  .map((tree) => ({ tree, size: JSON.stringify(tree.children).length }))
  .sort((a, b) => b.size - a.size)
  .slice(0, 12)
  .map(({ tree }) => workshop.build((builder) => feed(builder, tree)));

const TELLING = [
  0, 1, 2, 3, 4, 7, 8, 31, 32, 63, 64, 255, 4095, 4096, 0xffff, 0x7fff_ffff, 0xffff_ffff,
];

/** A few changes at places where something is: flips, telling numbers, parts of the image put elsewhere. */
function mutate(original: Uint8Array, random: Random): Buffer {
  let bytes = Buffer.from(original);
  const place = () => {
    // Mostly where the image is not empty.
    for (let attempt = 0; attempt < 8; attempt += 1) {
      const at = random.int(bytes.length - 8) & ~1;
      if (bytes.readUInt32LE(at) !== 0) return at;
    }
    return random.int(bytes.length - 8);
  };
  for (let change = random.int(4); change >= 0; change -= 1) {
    const at = place();
    switch (random.int(6)) {
      case 0:
        bytes.writeUInt8((bytes[at] ?? 0) ^ (1 << random.int(8)), at);
        break;
      case 1:
        bytes.writeUInt16LE((TELLING[random.int(TELLING.length)] ?? 0) & 0xffff, at);
        break;
      case 2:
        bytes.writeUInt32LE(TELLING[random.int(TELLING.length)] ?? 0, at & ~3);
        break;
      case 3:
        bytes.copy(bytes, at, place(), place() % 64);
        break;
      case 4: {
        const from = place();
        bytes.copy(bytes, at, from, Math.min(bytes.length, from + 1 + random.int(64)));
        break;
      }
      default:
        bytes.writeUInt8(((bytes[at] ?? 0) + 1 - 2 * random.int(2)) & 0xff, at);
    }
  }
  if (random.int(20) === 0) bytes = bytes.subarray(0, random.int(bytes.length));
  // Mostly with the outer seals right, so that what is behind them is reached.
  if (bytes.length >= 4096 && random.int(5) > 0) reseal(bytes);
  return bytes;
}

/** Memory that counts what is read of it, and refuses to be read without end. */
function meteredSource(bytes: Buffer): ByteSource {
  let left = bytes.length * 40 + 2 ** 22;
  return {
    sizeBytes: bytes.length,
    read(offset, length) {
      left -= length;
      if (left < 0) throw new Error('reads without end');
      return bytes.subarray(offset, offset + length);
    },
  };
}

/** Blobs of zeros as long as the image says, up to a megabyte. */
function openMutant(bytes: Buffer): ErofsImage {
  const { superBlock, meta } = openErofs(meteredSource(bytes));
  const zeros = Buffer.alloc(2 ** 20);
  const devices = superBlock.devices.map(({ blocks }) =>
    memorySource(zeros.subarray(0, Math.min(zeros.length, blocks * 4096))),
  );
  return openErofs(meta, devices);
}

/** Whether an action ended well. Anything but a refusal of the layer is a fault. */
function refuses(action: () => void): boolean {
  try {
    action();
    return false;
  } catch (thrown) {
    if (thrown instanceof DsecError && thrown.code === 'layer-invalid') return true;
    throw thrown;
  }
}

function readEverything(bytes: Buffer): void {
  const image = openMutant(bytes);
  for (const { inode } of walkImage(image, limits)) {
    readXattrs(image, inode);
    if (inode.kind === 'symlink') readLink(image, inode);
    if (inode.kind !== 'file') continue;
    let parts = 0;
    for (const _ of readContent(image, inode)) {
      parts += 1;
      if (parts > 20) break;
    }
  }
}

async function forEachMutant(check: (bytes: Buffer, original: LayerFiles) => void): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    await setImmediate();
    const random = createSeededRandom(SEED + round);
    const original = originals[round % originals.length] as LayerFiles;
    const bytes = mutate(original.built.meta, random);
    try {
      check(bytes, original);
    } catch (thrown) {
      throw new Error(`seed ${SEED + round}`, { cause: thrown });
    }
  }
}

describe('a damaged image', () => {
  it('is read or refused, with bounded work', MANY_CASES, async () => {
    let refused = 0;
    await forEachMutant((bytes) => {
      if (refuses(() => readEverything(bytes))) refused += 1;
    });
    expect(refused).toBeGreaterThan(ROUNDS / 10);
    expect(refused).toBeLessThan(ROUNDS);
  });

  it('is encoded again into a valid layer, or refused', MANY_CASES, async () => {
    await forEachMutant((bytes) => {
      try {
        const layer = build((b) => reencode(openMutant(bytes), b, limits), {
          limits,
        });
        validateLayer(layer.built.meta, {}, limits);
      } catch (thrown) {
        const code = thrown instanceof DsecError ? thrown.code : 'none';
        expect(['layer-invalid', 'import-invalid', 'import-limit']).toContain(code);
      }
    });
  });

  it(
    'that the validator accepts shows in the kernel what our reader shows',
    MANY_CASES,
    async () => {
      let accepted = 0;
      await forEachMutant((bytes, { built, blobPath }) => {
        const context = { deviceBlocks: built.devices.map((device) => device.blocks) };
        if (refuses(() => validateLayer(bytes, context, limits))) return;
        if (Buffer.compare(bytes, built.meta) === 0) return;
        accepted += 1;
        const valid = validateLayer(bytes, context, limits);
        const options = { stripWhiteouts: true, metaBytesMax: limits.metaBytesMax };
        validateLayer(mergeLayers([valid, valid], options).meta, {}, limits);
        if (!isRoot || accepted > (isLong ? 5000 : 100)) return;

        const metaPath = join(workshop.path, 'mutant.meta');
        writeFileSync(metaPath, bytes);
        const blobs = built.devices.length === 0 ? [] : [blobPath];
        const { image, close } = openFiles(metaPath, blobs);
        const byReader = plain(listImage(image));
        close();
        expect(plain(withMount(mountLayer(metaPath, blobs), listHost))).toEqual(byReader);
      });
      expect(accepted).toBeGreaterThan(ROUNDS / 100);
    },
  );
});
