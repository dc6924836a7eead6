import { createHash } from 'node:crypto';
import { digestOfHex } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import {
  CHUNK_BYTES,
  type DedupSource,
  type LayerBuilder,
  validateLayer,
  walkImage,
} from '../src/index.ts';
import {
  addFile,
  attributes,
  build,
  contentOf,
  LIMITS,
  type MemoryLayer,
  noise,
  openLayer,
} from './support/layers.ts';

function read(layer: MemoryLayer, path: string, others: readonly Buffer[] = []): Buffer {
  const image = openLayer(layer, others);
  for (const entry of walkImage(image, LIMITS)) {
    if (entry.path === path) return contentOf(image, entry.inode);
  }
  throw new Error(`no ${path}`);
}

function sourceOf(layer: MemoryLayer): DedupSource {
  const { blob } = layer.built;
  if (blob === undefined) throw new Error('a source has a blob');
  return { blobId: blob.blobId, index: blob.index };
}

describe('content', () => {
  it.each([1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 200_000, 5_000_000])(
    'of %i bytes comes back, padded to whole blocks',
    (length) => {
      const content = noise(length, length);
      const layer = build((b) => addFile(b, 'f', content));
      expect(read(layer, 'f').equals(content)).toBe(true);
      const whole = Math.floor(length / CHUNK_BYTES) * CHUNK_BYTES;
      const padded = whole + Math.ceil((length - whole) / 4096) * 4096;
      expect(layer.blob.bytes.length).toBe(padded);
      expect(layer.built.blob?.blocks).toBe(padded / 4096);
    },
  );

  it('is the same however it is cut into writes', () => {
    const content = noise(300_000, 3);
    const whole = build((b) => addFile(b, 'f', content));
    for (const size of [1000, 65_536, 65_537, 131_072]) {
      const cut = build((b) => {
        const sink = b.file('f', attributes(), content.length);
        for (let at = 0; at < content.length; at += size) {
          sink.write(content.subarray(at, at + size));
        }
        sink.end();
      });
      expect(cut.built.layerId).toBe(whole.built.layerId);
    }
  });

  it('may reuse the buffer of a write', () => {
    const layer = build((b) => {
      const sink = b.file('f', attributes(), 20);
      const buffer = Buffer.alloc(10);
      for (const letter of ['a', 'b']) sink.write(buffer.fill(letter));
      sink.end();
    });
    expect(read(layer, 'f').toString()).toBe('aaaaaaaaaabbbbbbbbbb');
  });

  it('reaches the blob in pieces of megabytes', () => {
    const layer = build((b) => {
      for (let file = 0; file < 200; file += 1) addFile(b, `${file}`, noise(100_000, file));
    });
    expect(layer.blob.bytes.length).toBe(200 * 25 * 4096);
    expect(layer.blob.appends).toBe(5);
  });
});

describe('zeros', () => {
  it('take no space, whether holes or written', () => {
    const fill = (give: (b: LayerBuilder) => void) => build(give);
    const written = fill((b) => addFile(b, 'f', Buffer.alloc(1_000_000)));
    const hole = fill((b) => {
      const sink = b.file('f', attributes(), 1_000_000);
      sink.hole(1_000_000);
      sink.end();
    });
    const mixed = fill((b) => {
      const sink = b.file('f', attributes(), 1_000_000);
      sink.write(Buffer.alloc(1));
      sink.hole(499_999);
      sink.write(Buffer.alloc(500_000));
      sink.end();
    });
    expect(written.built.blob).toBeUndefined();
    expect(written.built.devices).toEqual([]);
    expect(written.built.stats.holeBytes).toBe(1_000_000);
    expect(hole.built.layerId).toBe(written.built.layerId);
    expect(mixed.built.layerId).toBe(written.built.layerId);
  });

  it('beside data in one chunk are data', () => {
    const layer = build((b) => {
      const sink = b.file('f', attributes(), 200_000);
      sink.hole(100_000);
      sink.write(Buffer.from('x'));
      sink.hole(99_999);
      sink.end();
    });
    const expected = Buffer.alloc(200_000);
    expected[100_000] = 0x78;
    expect(read(layer, 'f').equals(expected)).toBe(true);
    expect(layer.built.stats).toMatchObject({ holeBytes: 134_464, storedBytes: 65_536 });
  });

  it('make files past 4 GiB and at the limit of the metadata', () => {
    const size = 5 * 2 ** 30 + 3;
    const layer = build((b) => {
      const sink = b.file('f', attributes(), size);
      sink.hole(size - 3);
      sink.write(Buffer.from('end'));
      sink.end();
    });
    const image = openLayer(layer);
    const [, file] = [...walkImage(image, LIMITS)];
    expect(file?.inode.sizeBytes).toBe(size);
    expect(layer.built.blob?.blocks).toBe(1);
  });
});

describe('deduplication', () => {
  it('keeps a chunk once, whatever file it is in', () => {
    const layer = build((b) => {
      addFile(b, 'a', noise(CHUNK_BYTES * 2, 1));
      addFile(b, 'b', noise(CHUNK_BYTES, 1));
      addFile(b, 'c', Buffer.concat([noise(CHUNK_BYTES, 1), Buffer.from('tail')]));
    });
    expect(layer.built.stats).toMatchObject({
      storedBytes: CHUNK_BYTES * 2 + 4,
      ownDuplicateBytes: CHUNK_BYTES * 2,
    });
    expect(layer.blob.bytes.length).toBe(CHUNK_BYTES * 2 + 4096);
    expect(read(layer, 'c').subarray(CHUNK_BYTES).toString()).toBe('tail');
  });

  it('refers to chunks of other blobs, and names only those that it uses', () => {
    const first = build((b) => addFile(b, 'a', noise(CHUNK_BYTES * 3, 1)));
    const unused = build((b) => addFile(b, 'a', noise(CHUNK_BYTES, 99)));
    const second = build((b) => addFile(b, 'b', noise(CHUNK_BYTES, 2)));
    const sources = [unused, first, second].map(sourceOf);
    const content = Buffer.concat([
      noise(CHUNK_BYTES, 1),
      noise(CHUNK_BYTES, 2),
      noise(CHUNK_BYTES, 3),
    ]);
    const layer = build((b) => addFile(b, 'x', content), { dedupSources: sources });

    expect(layer.built.stats).toMatchObject({
      sharedBytes: CHUNK_BYTES * 2,
      storedBytes: CHUNK_BYTES,
    });
    expect(layer.built.devices).toEqual([
      { blobId: layer.built.blob?.blobId, blocks: 16 },
      { blobId: first.built.blob?.blobId, blocks: 48 },
      { blobId: second.built.blob?.blobId, blocks: 16 },
    ]);
    const others = [first.blob.bytes, second.blob.bytes];
    expect(read(layer, 'x', others).equals(content)).toBe(true);
  });

  it('leaves no blob when every chunk is elsewhere', () => {
    const first = build((b) => addFile(b, 'a', 'text'));
    const layer = build((b) => addFile(b, 'b', 'text'), { dedupSources: [sourceOf(first)] });
    expect(layer.built.blob).toBeUndefined();
    expect(layer.built.devices).toEqual([{ blobId: first.built.blob?.blobId, blocks: 1 }]);
    expect(read(layer, 'b', [first.blob.bytes]).toString()).toBe('text');
  });

  it('refuses an index that is not the one of its name', () => {
    const { blobId, index } = sourceOf(build((b) => addFile(b, 'a', 'text')));
    const damaged = Buffer.from(index);
    damaged[0] = (damaged[0] ?? 0) ^ 1;
    expect(() => build(() => {}, { dedupSources: [{ blobId, index: damaged }] })).toThrow(
      'its index does not match its digest',
    );
  });
});

describe('the limit of block addresses', () => {
  it('holds for metadata and blobs together', () => {
    const digest = createHash('sha256')
      .update(Buffer.from('text'.padEnd(4096, '\0')))
      .digest();
    const sourceAt = (block: number) => {
      const index = Buffer.alloc(40);
      digest.copy(index);
      index.writeUInt32LE(block, 32);
      index.writeUInt32LE(1, 36);
      const blobId = digestOfHex(createHash('sha256').update(index).digest('hex'));
      return { dedupSources: [{ blobId, index }] };
    };
    const last = build((b) => addFile(b, 'f', 'text'), sourceAt(2 ** 32 - 10));
    expect(last.built.devices[0]?.blocks).toBe(2 ** 32 - 9);
    validateLayer(last.built.meta, {}, LIMITS);
    expect(() => build((b) => addFile(b, 'f', 'text'), sourceAt(2 ** 32 - 3))).toThrow(
      expect.objectContaining({ code: 'import-limit' }),
    );
  });
});

describe('dead chunks', () => {
  it('are discarded and left out of the index', () => {
    const layer = build((b) => {
      addFile(b, 'a', noise(CHUNK_BYTES, 1));
      addFile(b, 'b', noise(CHUNK_BYTES, 2));
      addFile(b, 'a', 'replaced');
    });
    expect(layer.blob.discarded).toEqual([{ startBlock: 0, blocks: 16 }]);
    expect(layer.built.blob?.index.length).toBe(2 * 40);
    expect(layer.blob.bytes.subarray(0, CHUNK_BYTES).every((byte) => byte === 0)).toBe(true);
    expect(read(layer, 'b').equals(noise(CHUNK_BYTES, 2))).toBe(true);
  });

  it('that another file needs stay', () => {
    const layer = build((b) => {
      addFile(b, 'a', noise(CHUNK_BYTES, 1));
      addFile(b, 'b', noise(CHUNK_BYTES, 1));
      addFile(b, 'a', 'replaced');
    });
    expect(layer.blob.discarded).toEqual([]);
    expect(read(layer, 'b').equals(noise(CHUNK_BYTES, 1))).toBe(true);
  });

  it('are given back while the build goes on, and stored again when they return', () => {
    const layer = build((b) => {
      for (let round = 0; round < 20; round += 1) addFile(b, 'f', noise(3_000_000, round));
      addFile(b, 'g', noise(3_000_000, 0));
    });
    expect(layer.blob.discarded.length).toBeGreaterThan(15 * 46);
    expect(read(layer, 'f').equals(noise(3_000_000, 19))).toBe(true);
    expect(read(layer, 'g').equals(noise(3_000_000, 0))).toBe(true);
  });

  it('leave no blob when nothing lives', () => {
    const layer = build((b) => {
      addFile(b, 'a', 'text');
      addFile(b, 'a', '');
    });
    expect(layer.built.blob).toBeUndefined();
    expect(layer.built.devices).toEqual([]);
  });
});
