import { describe, expect, it } from 'vitest';
import { memorySource, openErofs, readDirectory, readInode, walkImage } from '../src/index.ts';
import { attributes, build, LIMITS, openLayer } from './support/layers.ts';

const layer = build((b) => {
  for (const path of ['b/y', 'b/x/deep', 'a', 'b-', 'c/only']) b.fifo(path, attributes());
});

it('goes depth first in byte order, directories before what they hold', () => {
  const paths = [...walkImage(openLayer(layer), LIMITS)].map(({ path }) => path);
  expect(paths).toEqual(['', 'a', 'b', 'b/x', 'b/x/deep', 'b/y', 'b-', 'c', 'c/only']);
});

it('walks deeper than any stack', () => {
  const deep = build((b) => b.fifo(`${'d/'.repeat(3000)}f`, attributes()), {
    limits: { ...LIMITS, depthMax: 4000 },
  });
  const image = openErofs(memorySource(deep.built.meta));
  const walked = [...walkImage(image, { entriesMax: 10_000, depthMax: 4000 })];
  expect(walked).toHaveLength(3002);
  expect(() => [...walkImage(image, { entriesMax: 10_000, depthMax: 100 })]).toThrow('deeper than');
});

describe('an image that was not validated', () => {
  /** Lets the entry `a` of the root lead to another inode. */
  function redirected(nid: number) {
    const meta = Buffer.from(layer.built.meta);
    const image = openErofs(memorySource(meta));
    const root = readInode(image, 1);
    const index = [...readDirectory(image, root)].findIndex((entry) => entry.name === 'b');
    meta.writeUInt32LE(nid, root.offset + 64 + index * 12);
    return image;
  }

  it('with a loop ends', () => {
    expect(() => [...walkImage(redirected(1), LIMITS)]).toThrow('in two ways');
  });

  it('with one directory under two names ends', () => {
    const image = openErofs(memorySource(layer.built.meta));
    const c = [...readDirectory(image, readInode(image, 1))].find((entry) => entry.name === 'c');
    expect(() => [...walkImage(redirected(c?.nid ?? 0), LIMITS)]).toThrow('in two ways');
  });

  it('with more entries than the limit ends', () => {
    const limits = { ...LIMITS, entriesMax: 3 };
    expect(() => [...walkImage(openLayer(layer), limits)]).toThrow('more than 3 entries');
  });
});
