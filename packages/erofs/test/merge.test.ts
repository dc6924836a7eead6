import { describe, expect, it } from 'vitest';
import {
  DEVICES_MAX,
  type LayerBuilder,
  memorySource,
  mergeLayers,
  openErofs,
  validateLayer,
} from '../src/index.ts';
import {
  addFile,
  attributes,
  build,
  LIMITS,
  type MemoryLayer,
  show,
  xattrs,
} from './support/layers.ts';

type Fill = (builder: LayerBuilder) => void;

function mergeAll(layers: readonly MemoryLayer[], stripWhiteouts: boolean) {
  const valid = layers.map(({ built }) => validateLayer(built.meta, {}, LIMITS));
  const merged = mergeLayers(valid, { stripWhiteouts, metaBytesMax: LIMITS.metaBytesMax });
  validateLayer(merged.meta, { deviceBlocks: merged.devices.map((d) => d.blocks) }, LIMITS);
  return merged;
}

/** What is seen of a stack, bottom first: kept as a diff, and stripped to a whole tree. */
function merge(...fills: Fill[]): { diff: Record<string, string>; whole: Record<string, string> } {
  const layers = fills.map((fill) => build(fill));
  const blobOf = new Map(layers.map(({ built, blob }) => [built.blob?.blobId, blob.bytes]));
  const showOf = (stripWhiteouts: boolean) => {
    const { meta, devices } = mergeAll(layers, stripWhiteouts);
    const blobs = devices.map(({ blobId }) => blobOf.get(blobId) ?? Buffer.alloc(0));
    return show(openErofs(memorySource(meta), blobs.map(memorySource)));
  };
  return { diff: showOf(false), whole: showOf(true) };
}

const dir = (mode: number) => attributes({ mode });

describe('two layers', () => {
  it('show the files of both, the upper first', () => {
    const { diff, whole } = merge(
      (b) => {
        addFile(b, 'a', 'lower');
        addFile(b, 'd/b', 'lower');
        b.directory('d', dir(0o700));
      },
      (b) => {
        addFile(b, 'a', 'upper');
        addFile(b, 'd/c', 'upper');
        b.directory('d', dir(0o750));
        b.directory('', dir(0o711));
      },
    );
    expect(whole).toEqual({
      '': 'directory 711',
      a: 'file 644 upper',
      d: 'directory 750',
      'd/b': 'file 644 lower',
      'd/c': 'file 644 upper',
    });
    expect(diff).toEqual(whole);
  });

  it('hide what a whiteout names', () => {
    const { diff, whole } = merge(
      (b) => {
        addFile(b, 'gone', 'x');
        addFile(b, 'tree/x/y', 'x');
        addFile(b, 'stays', 'x');
      },
      (b) => {
        b.whiteout('gone');
        b.whiteout('tree');
        b.whiteout('never-there');
      },
    );
    expect(whole).toEqual({ '': 'directory 755', stays: 'file 644 x' });
    expect(diff).toEqual({
      ...whole,
      gone: 'whiteout 0',
      tree: 'whiteout 0',
      'never-there': 'whiteout 0',
    });
  });

  it('hide what is below an opaque directory', () => {
    const { diff, whole } = merge(
      (b) => addFile(b, 'd/old', 'x'),
      (b) => {
        b.opaque('d');
        addFile(b, 'd/new', 'x');
      },
    );
    expect(whole).toEqual({ '': 'directory 755', d: 'directory 755', 'd/new': 'file 644 x' });
    expect(diff.d).toBe('directory 755 trusted.overlay.opaque=y');
  });

  it('let a file replace a directory, and a directory a file', () => {
    const { diff, whole } = merge(
      (b) => {
        addFile(b, 'a/x', 'lower');
        addFile(b, 'b', 'lower');
      },
      (b) => {
        addFile(b, 'a', 'upper');
        addFile(b, 'b/x', 'upper');
      },
    );
    expect(whole).toEqual({
      '': 'directory 755',
      a: 'file 644 upper',
      b: 'directory 755',
      'b/x': 'file 644 upper',
    });
    // What lies below the hidden file must not come back.
    expect(diff.b).toBe('directory 755 trusted.overlay.opaque=y');
  });

  it('take the xattrs of the upper directory alone', () => {
    const of = (name: string) => attributes({ mode: 0o755, xattrs: xattrs({ [name]: '1' }) });
    const { whole } = merge(
      (b) => b.directory('d', of('user.lower')),
      (b) => b.directory('d', of('user.upper')),
    );
    expect(whole.d).toBe('directory 755 user.upper=1');
  });
});

describe('three layers', () => {
  it('bring a name back after a whiteout, without what was hidden', () => {
    const { diff, whole } = merge(
      (b) => addFile(b, 'd/old', 'x'),
      (b) => b.whiteout('d'),
      (b) => addFile(b, 'd/new', 'x'),
    );
    expect(whole).toEqual({ '': 'directory 755', d: 'directory 755', 'd/new': 'file 644 x' });
    expect(diff.d).toBe('directory 755 trusted.overlay.opaque=y');
  });

  it('keep a directory opaque through a plain one above it', () => {
    const { diff } = merge(
      (b) => addFile(b, 'd/old', 'x'),
      (b) => b.opaque('d'),
      (b) => addFile(b, 'd/new', 'x'),
    );
    expect(diff).toEqual({
      '': 'directory 755',
      d: 'directory 755 trusted.overlay.opaque=y',
      'd/new': 'file 644 x',
    });
  });
});

describe('hard links', () => {
  it('stay together, and names that are hidden no longer count', () => {
    const layers = [
      build((b) => {
        addFile(b, 'a', 'text');
        b.hardLink('b', 'a');
        b.hardLink('c', 'a');
      }),
      build((b) => b.whiteout('b')),
    ];
    const valid = validateLayer(mergeAll(layers, true).meta, {}, LIMITS);
    expect(valid).toMatchObject({ entries: 2, inodes: 2 });
  });
});

describe('devices', () => {
  it('are joined, and those of which nothing is seen are left out', () => {
    const hidden = build((b) => addFile(b, 'a', 'hidden'));
    const first = build((b) => addFile(b, 'b', 'first'));
    const second = build((b) => addFile(b, 'a', 'second'), {
      dedupSources: [
        { blobId: first.built.blob?.blobId as never, index: first.built.blob?.index as never },
      ],
    });
    const again = build((b) => addFile(b, 'c', 'first'), {
      dedupSources: [
        { blobId: first.built.blob?.blobId as never, index: first.built.blob?.index as never },
      ],
    });
    const { devices } = mergeAll([hidden, first, second, again], true);
    expect(devices).toEqual([
      { blobId: first.built.blob?.blobId, blocks: 1 },
      { blobId: second.built.blob?.blobId, blocks: 1 },
    ]);
  });

  it('may need a table of several blocks, but not more than the limit', () => {
    const layers = Array.from({ length: DEVICES_MAX + 1 }, (_, index) =>
      build((b) => addFile(b, `${index}`, `content ${index}`)),
    );
    const { devices, meta } = mergeAll(layers.slice(0, DEVICES_MAX), true);
    expect(devices).toHaveLength(DEVICES_MAX);
    const blobs = layers.map(({ blob }) => memorySource(blob.bytes));
    expect(show(openErofs(memorySource(meta), blobs))['200']).toBe('file 644 content 200');
    expect(() => mergeAll(layers, true)).toThrow('would need 257 blobs');
  });
});

it('of one layer is that layer', () => {
  const layer = build((b) => {
    addFile(b, 'a', 'text', { xattrs: xattrs({ 'user.a': 'b' }) });
    b.whiteout('w');
    b.opaque('o');
  });
  expect(mergeAll([layer], false).layerId).toBe(layer.built.layerId);
});

it('of nothing is refused', () => {
  expect(() => mergeAll([], true)).toThrow('nothing to merge');
});
