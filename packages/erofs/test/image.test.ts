import { closeSync, mkdtempSync, openSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import {
  fileSource,
  memorySource,
  openErofs,
  readContent,
  readDirectory,
  readInode,
  readLink,
  readXattrs,
} from '../src/index.ts';
import { addFile, attributes, build, noise, xattrs } from './support/layers.ts';

const directory = mkdtempSync(join(tmpdir(), 'dsec-image-'));
afterAll(() => rmSync(directory, { recursive: true }));

const layer = build((b) => {
  addFile(b, 'f', noise(3_000_000, 1));
  b.symlink('l', attributes({ xattrs: new Map() }), 'f');
  for (let index = 0; index < 2000; index += 1)
    b.fifo(`wide/${'n'.repeat(index % 250)}${index}`, attributes());
  b.directory('x', attributes({ xattrs: xattrs({ 'user.a': '1', 'user.b': '' }) }));
});
const image = openErofs(memorySource(layer.built.meta), [memorySource(layer.blob.bytes)]);
const root = readInode(image, image.superBlock.rootNid);
const entryOf = (name: string) => {
  const entry = [...readDirectory(image, root)].find((each) => each.name === name);
  if (entry === undefined) throw new Error(`no ${name}`);
  return readInode(image, entry.nid);
};

describe('an open image', () => {
  it('names its blobs', () => {
    expect(image.superBlock.devices).toMatchObject([
      { tag: layer.built.blob?.blobId.slice(7), blocks: layer.built.blob?.blocks },
    ]);
  });

  it('lists a directory of many blocks in byte order, dots included', () => {
    const wide = entryOf('wide');
    expect(wide.sizeBytes).toBeGreaterThan(65_536);
    const names = [...readDirectory(image, wide)].map((entry) => entry.name);
    expect(names).toHaveLength(2002);
    expect(names.slice(0, 2)).toEqual(['.', '..']);
    expect([...names].sort()).toEqual(names);
  });

  it('gives content in parts of at most 1 MiB', () => {
    const parts = [...readContent(image, entryOf('f'))];
    const bytes = parts.map((part) => (part.kind === 'data' ? part.bytes : Buffer.alloc(0)));
    expect(Math.max(...bytes.map((each) => each.length))).toBeLessThanOrEqual(2 ** 20);
    expect(Buffer.concat(bytes).equals(noise(3_000_000, 1))).toBe(true);
  });

  it('reads links and xattrs', () => {
    expect(readLink(image, entryOf('l'))).toBe('f');
    expect([...readXattrs(image, entryOf('x'))]).toEqual([
      ['user.a', Buffer.from('1')],
      ['user.b', Buffer.alloc(0)],
    ]);
  });

  it('says which blob is missing', () => {
    const bare = openErofs(memorySource(layer.built.meta));
    expect(() => [...readContent(bare, entryOf('f'))]).toThrow('device 1, which is not there');
    const short = openErofs(memorySource(layer.built.meta), [memorySource(Buffer.alloc(4096))]);
    expect(() => [...readContent(short, entryOf('f'))]).toThrow('which it does not have');
  });

  it('refuses to read one kind as another', () => {
    expect(() => readLink(image, entryOf('f'))).toThrow('symlink');
    expect(() => [...readDirectory(image, entryOf('f'))]).toThrow('no directory');
  });
});

describe('a file as a source', () => {
  it('is read like memory', () => {
    const path = join(directory, 'meta');
    writeFileSync(path, layer.built.meta);
    const fd = openSync(path, 'r');
    try {
      const source = fileSource(fd, layer.built.meta.length);
      const opened = openErofs(source);
      expect(opened.superBlock).toEqual(image.superBlock);
      truncateSync(path, 8192);
      expect(() => source.read(4096, 8192)).toThrow('shorter than it was');
    } finally {
      closeSync(fd);
    }
  });
});

describe('what is no image', () => {
  it.each([
    ['nothing', Buffer.alloc(0)],
    ['zeros', Buffer.alloc(8192)],
    ['text', Buffer.alloc(8192, 'squashfs? ')],
  ])('is refused: %s', (_, bytes) => {
    expect(() => openErofs(memorySource(bytes))).toThrow(
      expect.objectContaining({ code: 'layer-invalid' }),
    );
  });
});
