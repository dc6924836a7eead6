/**
 * The memory of an import of an image with several layers at the default limits (THREATS C12). What a layer
 * hides, replaces or removes of those below it costs memory as well; `tar-memory` has the shapes of one tar.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, it } from 'vitest';
import {
  type LayerFields,
  layer,
  OCI,
  savedImage,
  simpleLayout,
  writeTar,
  writeTree,
} from '../../packages/layers/test/sources/image-encoder.ts';
import { gnuLong, tarHeader } from '../../packages/layers/test/sources/tar-encoder.ts';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { checkMemory, importByCommand } from './import-memory.ts';

const isLong = process.env.DSEC_TEST_LONG === '1';
/** A little less than `entriesMax`. */
const ENTRIES = 199_900;

const work = mkdtempSync(join(tmpdir(), 'dsec-oci-memory-'));
const state = join(work, 'state');
const source = join(work, 'source');
afterAll(() => rmSync(work, { recursive: true, force: true }));
afterEach(() => {
  rmSync(state, { recursive: true, force: true });
  rmSync(source, { recursive: true, force: true });
});
compileFirst();

const member = (name: string, type: string, link = '') => [
  ...(name.length < 100 ? [] : [gnuLong('L', name)]),
  tarHeader({ name: name.slice(0, 99), type, link, major: 1, minor: 3 }),
];
const directory = (name: string) => member(name, '5');
const file = (name: string) => member(name, '0');
const device = (name: string) => member(name, '3');
const link = (name: string) => member(name, '1', 'f');
const unique = (i: number, length: number) => `${i}`.padEnd(length, 'n');

/** Joined here: so many members are too many for arguments. */
function layerOf(count: number, make: (i: number) => readonly Buffer[]): LayerFields {
  return layer(Buffer.concat(Array.from({ length: count }, (_, i) => make(i)).flat()));
}

function packedByZstd({ bytes }: LayerFields, ...options: string[]): LayerFields {
  const packed = execFileSync('zstd', ['-q', '-1', ...options], {
    input: bytes,
    maxBuffer: bytes.length + 4096,
  });
  return { bytes: packed, tar: bytes, mediaType: OCI.zstd };
}

interface Shape {
  readonly isLayout: boolean;
  readonly accepts?: boolean;
  readonly isWorst?: boolean;
  layers(): LayerFields[];
}

/** Members of each of `parts` equal layers: names count in every layer that has them, whiteouts as well. */
const share = (parts: number) => Math.floor(ENTRIES / parts);

const SHAPES: Record<string, Shape> = {
  'directories, devices and links to one file, half of the first whited out': {
    isLayout: false,
    isWorst: true,
    layers: () => [
      layerOf(share(3), (i) => directory(unique(i, 100))),
      layerOf(share(6), (i) => device(`d${i}`)),
      layerOf(share(3), (i) => (i === 0 ? file('f') : link(unique(i, 120)))),
      layerOf(share(6), (i) => file(`.wh.${unique(i, 100)}`)),
    ],
  },
  'directories and links to one file in zstd with the largest window': {
    isLayout: true,
    isWorst: true,
    layers: () => [
      packedByZstd(
        layerOf(2 * share(3), (i) => directory(unique(i, 30))),
        '--long=26',
      ),
      packedByZstd(
        layerOf(share(3), (i) => (i === 0 ? file('f') : link(`l${i}`))),
        '--long=26',
      ),
    ],
  },
  'everything removed and made again by each layer': {
    isLayout: false,
    layers: () =>
      [60, 61, 62].flatMap((length) => [
        layerOf(share(6), (i) => directory(unique(i, length))),
        layerOf(share(6), (i) => file(`.wh.${unique(i, length)}`)),
      ]),
  },
  'every name of another kind in each layer': {
    isLayout: true,
    layers: () =>
      [directory, file, directory, device, directory].map((make) =>
        packedByZstd(layerOf(share(5), (i) => make(unique(i, 60)))),
      ),
  },
  'opaque directories with something below them': {
    isLayout: false,
    layers: () => [
      layerOf(share(5), (i) => file(`${i}/f`)),
      layerOf(share(5), (i) => file(`${i}/.wh..wh..opq`)),
      layerOf(share(5), (i) => directory(`${i}/d`)),
      layerOf(share(5), (i) => file(`${i}/.wh..wh..opq`)),
    ],
  },
  'opaque directories and whiteouts of what is not there': {
    isLayout: true,
    layers: () => [
      packedByZstd(layerOf(1, () => file('f'))),
      packedByZstd(layerOf(share(5), (i) => file(`${i}/.wh..wh..opq`))),
      packedByZstd(layerOf(share(5), (i) => file(`.wh.${unique(i, 200)}`))),
      packedByZstd(layerOf(share(5), (i) => file(`${i}/.wh.${unique(i, 200)}`))),
    ],
  },
  'the root made opaque between layers': {
    isLayout: false,
    layers: () =>
      [20, 21, 22].flatMap((length) => [
        layerOf(share(3) - 1, (i) => directory(unique(i, length))),
        layer(...file('.wh..wh..opq')),
      ]),
  },
  'too much in sum': {
    isLayout: true,
    accepts: false,
    layers: () =>
      [20, 21, 22].map((length) =>
        packedByZstd(layerOf(share(2), (i) => directory(unique(i, length)))),
      ),
  },
};

function write({ isLayout, layers }: Shape): void {
  const all = layers();
  if (isLayout) writeTree(source, simpleLayout({ layers: all }));
  else writeTar(source, savedImage(all));
}

const options = { timeout: isLong ? 900_000 : 240_000 };

describe('an import of an image stays below 256 MiB with', () => {
  const shapes = Object.entries(SHAPES).filter(([, shape]) => isLong || shape.isWorst);
  it.each(shapes)('%s', options, async (_, shape) => {
    write(shape);
    checkMemory(await importByCommand(state, source), shape.accepts ?? true);
  });
});
