import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  type LayerBuilder,
  memorySource,
  openBlobIndex,
  treeDigestOfData,
  treeDigestOfIndexes,
  validateLayer,
} from '../src/index.ts';
import {
  addFile,
  attributes,
  build,
  LIMITS,
  type MemoryLayer,
  noise,
  xattrs,
} from './support/layers.ts';

const fill = (b: LayerBuilder) => {
  b.directory('d', attributes({ mode: 0o750, uid: 1, gid: 2, mtimeSec: -3, mtimeNsec: 4 }));
  addFile(b, 'd/f', Buffer.concat([noise(70_000, 1), Buffer.alloc(200_000), noise(5, 2)]), {
    xattrs: xattrs({ 'user.b': '2', 'user.a': '1' }),
  });
  b.hardLink('g', 'd/f');
  b.symlink('l', attributes(), 'target');
  b.device('n', attributes(), { kind: 'char', major: 5, minor: 6 });
  b.whiteout('w');
  b.opaque('d');
};
const layer = build(fill);

function valid({ built }: MemoryLayer) {
  return validateLayer(built.meta, {}, LIMITS);
}

/** The format of the digest, written out a second time from its description. */
function record(...parts: (number | string | Buffer)[][]): Buffer {
  return Buffer.concat(
    parts.map(([value, width]) => {
      if (typeof value !== 'number') return Buffer.from(value as string, 'latin1');
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(BigInt(value));
      return bytes.subarray(0, width as number);
    }),
  );
}

it('is sha256 over the records of the tree', () => {
  const small = build((b) => {
    addFile(b, 'f', Buffer.concat([Buffer.alloc(65_536), Buffer.from('hi')]), {
      mode: 0o600,
      uid: 7,
      mtimeSec: -1,
      xattrs: xattrs({ 'user.x': 'y' }),
    });
    b.hardLink('g', 'f');
    b.symlink('s', attributes({ mode: 0o777 }), 'to');
  });
  const head = (mode: number, uid: number, seconds: number, count: number) =>
    record([mode, 2], [uid, 4], [0, 4], [seconds, 8], [0, 4], [count, 4]);
  const chunk = createHash('sha256')
    .update(Buffer.from('hi'.padEnd(4096, '\0')))
    .digest();
  const bytes = Buffer.concat([
    Buffer.from('dsec-tree-1\n'),
    record([0, 2], [2, 1]),
    head(0o755, 0, 0, 0),
    record([1, 2], ['f'], [1, 1]),
    head(0o600, 7, -1, 1),
    record([6, 2], ['user.x'], [1, 4], ['y']),
    record([65_538, 8], [0, 1], [1, 4], [1, 1], [1, 4]),
    chunk,
    record([1, 2], ['g'], [8, 1], [1, 8]),
    record([1, 2], ['s'], [7, 1]),
    head(0o777, 0, 0, 0),
    record([2, 4], ['to']),
    record([0xffff, 2]),
  ]);
  const expected = createHash('sha256').update(bytes).digest('hex');
  expect(small.built.treeDigest).toBe(`sha256:${expected}`);
});

describe('the same tree', () => {
  it('has the same digest by its data and by the indexes of its blobs', () => {
    const blob = layer.built.blob as NonNullable<typeof layer.built.blob>;
    expect(treeDigestOfData(valid(layer), [memorySource(layer.blob.bytes)])).toBe(
      layer.built.treeDigest,
    );
    expect(treeDigestOfIndexes(valid(layer), [openBlobIndex(blob.blobId, blob.index)])).toBe(
      layer.built.treeDigest,
    );
  });

  it('has the same digest whatever it was deduplicated against', () => {
    const other = build((b) => addFile(b, 'x', noise(70_000, 1)));
    const { blobId, index } = other.built.blob as NonNullable<typeof other.built.blob>;
    const shared = build(fill, { dedupSources: [{ blobId, index }] });
    expect(shared.built.layerId).not.toBe(layer.built.layerId);
    expect(shared.built.treeDigest).toBe(layer.built.treeDigest);
    const devices = [shared.blob.bytes, other.blob.bytes].map(memorySource);
    expect(treeDigestOfData(valid(shared), devices)).toBe(layer.built.treeDigest);
  });
});

describe('another tree', () => {
  it.each<[string, (b: LayerBuilder) => void]>([
    ['name', (b) => b.fifo('x', attributes())],
    [
      'mode',
      (b) =>
        b.directory('d', attributes({ mode: 0o751, uid: 1, gid: 2, mtimeSec: -3, mtimeNsec: 4 })),
    ],
    [
      'owner',
      (b) =>
        b.directory('d', attributes({ mode: 0o750, uid: 2, gid: 2, mtimeSec: -3, mtimeNsec: 4 })),
    ],
    [
      'group',
      (b) =>
        b.directory('d', attributes({ mode: 0o750, uid: 1, gid: 3, mtimeSec: -3, mtimeNsec: 4 })),
    ],
    [
      'time',
      (b) =>
        b.directory('d', attributes({ mode: 0o750, uid: 1, gid: 2, mtimeSec: -3, mtimeNsec: 5 })),
    ],
    ['target', (b) => b.symlink('l', attributes(), 'targes')],
    ['device', (b) => b.device('n', attributes(), { kind: 'char', major: 5, minor: 7 })],
    ['kind of device', (b) => b.device('n', attributes(), { kind: 'block', major: 5, minor: 6 })],
    [
      'links',
      (b) => addFile(b, 'g', Buffer.concat([noise(70_000, 1), Buffer.alloc(200_000), noise(5, 2)])),
    ],
    ['content', (b) => addFile(b, 'd/f', 'other')],
    ['opaque mark', (b) => b.opaque('e')],
    ['whiteout', (b) => b.whiteout('v')],
  ])('of another %s has another digest', (_, change) => {
    const changed = build((b) => {
      fill(b);
      change(b);
    });
    expect(changed.built.treeDigest).not.toBe(layer.built.treeDigest);
  });

  it('of more zeros at the end of a file has another digest', () => {
    const of = (length: number) =>
      build((b) => addFile(b, 'f', Buffer.concat([Buffer.from('x'), Buffer.alloc(length)])));
    const digests = [0, 1, 4095, 65_535, 65_536].map((length) => of(length).built.treeDigest);
    expect(new Set(digests).size).toBe(digests.length);
  });
});

it('is refused by an index without the chunk', () => {
  const other = build((b) => addFile(b, 'x', 'something else'));
  const { blobId, index } = other.built.blob as NonNullable<typeof other.built.blob>;
  expect(() => treeDigestOfIndexes(valid(layer), [openBlobIndex(blobId, index)])).toThrow(
    'no chunk at block',
  );
});
