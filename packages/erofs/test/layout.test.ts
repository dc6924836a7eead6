import { describe, expect, it } from 'vitest';
import { directoryBlocks, shapeOf } from '../src/layout.ts';
import { IMPLICIT_DIRECTORY, newDirectory, newFile, newSpecial, newSymlink } from '../src/tree.ts';

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
