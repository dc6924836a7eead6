import { describe, expect, it } from 'vitest';
import { validateLayer, walkImage } from '../src/index.ts';
import { directoryBlocks, shapeOf } from '../src/layout.ts';
import { IMPLICIT_DIRECTORY, newDirectory, newFile, newSpecial, newSymlink } from '../src/tree.ts';
import { attributes, build, LIMITS, xattrs } from './support/layers.ts';

describe('directoryBlocks', () => {
  it('puts the dots where their bytes belong', () => {
    expect(directoryBlocks(['!', '-', '...', '.a', 'a'])).toEqual([
      ['!', '-', '.', '..', '...', '.a', 'a'],
    ]);
    expect(directoryBlocks([])).toEqual([['.', '..']]);
    expect(directoryBlocks(['\x01', '!'])).toEqual([['\x01', '!', '.', '..']]);
  });

  it('fills a block to the last byte and begins the next', () => {
    // 12 + 1 and 12 + 2 for the dots leave 4069 bytes: fifteen names of 255 and one of 52.
    const names = Array.from({ length: 15 }, (_, n) => String.fromCharCode(0x61 + n).repeat(255));
    const exact = [...names, 'z'.repeat(4069 - 15 * 267 - 12)];
    expect(directoryBlocks(exact).map((block) => block.length)).toEqual([18]);
    const over = [...names, 'z'.repeat(4069 - 15 * 267 - 11)];
    expect(directoryBlocks(over).map((block) => block.length)).toEqual([17, 1]);
  });
});

describe('inodes of every length', () => {
  it('find a place where their content does not cross a block', () => {
    for (let length = 0; length <= 4100; length += 20) {
      const long = xattrs({ 'user.long': 'x'.repeat(length) });
      const layer = build((b) => {
        b.directory('', attributes({ xattrs: long }));
        b.directory(
          'd',
          attributes({ xattrs: xattrs({ 'user.other': 'y'.repeat(4100 - length) }) }),
        );
        for (let name = 0; name < 5; name += 1) b.fifo(`d/${'n'.repeat(150)}${name}`, attributes());
        b.symlink('link', attributes(), 'z'.repeat(length % 4095 || 1));
        b.symlink('next', attributes(), 'z'.repeat(4095 - (length % 4095)));
      });
      const valid = validateLayer(layer.built.meta, {}, LIMITS);
      expect(valid.entries).toBe(8);
    }
  });
});

describe('the last inode', () => {
  it('has room for a header of xattrs behind it, in an image that stays as small as it can', () => {
    for (let count = 1; count <= 130; count += 1) {
      const { meta } = build((b) => {
        for (let name = 0; name < count; name += 1) b.fifo(`${name}`, attributes());
      }).built;
      const { image } = validateLayer(meta, {}, LIMITS);
      const offsets = [...walkImage(image, LIMITS)].map(({ inode }) => inode.offset);
      const needed = Math.max(...offsets) + 64 + 12;
      expect(meta.length - needed).toBeGreaterThanOrEqual(0);
      expect(meta.length - needed).toBeLessThan(4096);
    }
  });
});

describe('shapeOf', () => {
  const head = IMPLICIT_DIRECTORY;
  it('keeps a link beside its inode while both fit into a block', () => {
    expect(shapeOf(newSymlink(head, 'x'.repeat(4032)), 0)).toMatchObject({
      layout: 2,
      inlineBytes: 4032,
      plainBlocks: 0,
    });
    expect(shapeOf(newSymlink(head, 'x'.repeat(4033)), 0)).toMatchObject({
      layout: 0,
      inlineBytes: 0,
      plainBlocks: 1,
    });
  });

  it('keeps the rest of a directory beside its inode', () => {
    const directory = newDirectory(head);
    directory.sizeBytes = 3 * 4096 + 100;
    expect(shapeOf(directory, 0)).toMatchObject({ layout: 2, inlineBytes: 100, plainBlocks: 3 });
    directory.sizeBytes = 3 * 4096;
    expect(shapeOf(directory, 0)).toMatchObject({ layout: 0, inlineBytes: 0, plainBlocks: 3 });
    directory.sizeBytes = 3 * 4096 + 100;
    expect(shapeOf(directory, 4000)).toMatchObject({ layout: 0, inlineBytes: 0, plainBlocks: 4 });
  });

  it('aligns chunk indexes and gives an empty file none', () => {
    expect(shapeOf(newFile(head, 65_537, 0), 20)).toMatchObject({
      layout: 4,
      headBytes: 88,
      chunkBytes: 16,
    });
    expect(shapeOf(newFile(head, 0, 0), 0)).toMatchObject({ layout: 4, chunkBytes: 0 });
  });

  it('gives special files nothing', () => {
    expect(shapeOf(newSpecial(head, 'fifo', 0), 0)).toMatchObject({ layout: 0, plainBlocks: 0 });
  });
});
