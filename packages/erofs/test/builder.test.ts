import { DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { createLayerBuilder, type InodeAttributes, type LayerBuilder } from '../src/index.ts';
import {
  addFile,
  attributes,
  build,
  LIMITS,
  memoryBlob,
  noise,
  openLayer,
  showLayer,
  xattrs,
} from './support/layers.ts';

const applying = { whiteouts: 'apply' as const };

function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (thrown) {
    if (thrown instanceof DsecError) return `${thrown.code}: ${thrown.message}`;
    throw thrown;
  }
  return 'nothing thrown';
}

const codeOfFill = (fill: (builder: LayerBuilder) => void, options = {}) =>
  codeOf(() => build(fill, options));

/** Files of ten bytes. */
function addEach(b: LayerBuilder, paths: string[], change: Partial<InodeAttributes> = {}): void {
  for (const path of paths) addFile(b, path, '0123456789', change);
}

describe('entries that meet', () => {
  it('makes missing parents as 0755 of root', () => {
    const layer = build((b) => b.fifo('a/b/c', attributes()));
    expect(showLayer(layer)).toEqual({
      '': 'directory 755',
      a: 'directory 755',
      'a/b': 'directory 755',
      'a/b/c': 'fifo 644',
    });
  });

  it('lets the later one of two win', () => {
    const layer = build((b) => {
      addFile(b, 'f', 'one');
      addFile(b, 'f', 'two', { mode: 0o600 });
      b.symlink('l', attributes(), 'x');
      b.fifo('l', attributes());
    });
    expect(showLayer(layer)).toMatchObject({ f: 'file 600 two', l: 'fifo 644' });
    expect(layer.built.stats).toMatchObject({ entries: 2, inodes: 3, contentBytes: 3 });
  });

  it('keeps the children of a directory that is described again', () => {
    const layer = build((b) => {
      b.directory('d', attributes({ mode: 0o700 }));
      b.fifo('d/x', attributes());
      b.directory('d', attributes({ mode: 0o755 }));
      b.directory('', attributes({ mode: 0o750 }));
    });
    expect(showLayer(layer)).toEqual({
      '': 'directory 750',
      d: 'directory 755',
      'd/x': 'fifo 644',
    });
  });

  it('replaces a non-directory on the way and never follows it', () => {
    const layer = build((b) => {
      b.directory('real', attributes());
      b.symlink('link', attributes(), 'real');
      b.fifo('link/x', attributes());
    });
    expect(showLayer(layer)).toEqual({
      '': 'directory 755',
      real: 'directory 644',
      link: 'directory 755',
      'link/x': 'fifo 644',
    });
  });

  it('drops the whole tree when a file takes the place of a directory', () => {
    const layer = build((b) => {
      addFile(b, 'd/x/y', noise(100_000, 1));
      addFile(b, 'd', 'short');
    });
    expect(showLayer(layer)).toEqual({ '': 'directory 755', d: 'file 644 short' });
    expect(layer.blob.discarded).toEqual([
      { startBlock: 0, blocks: 16 },
      { startBlock: 16, blocks: 9 },
    ]);
  });
});

describe('hard links', () => {
  it('share one inode and count its names', () => {
    const layer = build((b) => {
      addFile(b, 'a', 'text');
      b.hardLink('d/b', 'a');
      b.hardLink('a', 'd/b');
    });
    expect(layer.built.stats).toMatchObject({ entries: 3, inodes: 3 });
    expect(showLayer(layer)).toMatchObject({ a: 'file 644 text', 'd/b': 'file 644 text' });
  });

  it('survive when the target is inside what they replace', () => {
    const layer = build((b) => {
      addFile(b, 'd/f', noise(10_000, 7));
      b.hardLink('d', 'd/f');
    });
    expect(showLayer(layer)).toEqual({
      '': 'directory 755',
      d: `file 644 ${noise(10_000, 7).toString('latin1')}`,
    });
    expect(layer.blob.discarded).toEqual([]);
  });

  it.each([
    ['nothing', 'none'],
    ['a directory', 'd'],
    ['nothing', 'f/under-a-file'],
  ])('to %s (%s) are refused', (what, target) => {
    const refused = codeOfFill((b) => {
      b.directory('d', attributes());
      b.fifo('f', attributes());
      b.hardLink('h', target);
    });
    expect(refused).toBe(`import-invalid: "h": is a hard link to ${what}`);
  });

  it('to a file that its own path replaces are refused', () => {
    const refused = codeOfFill((b) => {
      addFile(b, 'f', 'x');
      b.hardLink('f/g', 'f');
    });
    expect(refused).toBe('import-invalid: "f/g": is a hard link to a directory');
  });
});

describe('whiteouts that are kept', () => {
  it('are char devices 0:0 and opaque xattrs', () => {
    const layer = build((b) => {
      b.whiteout('gone');
      b.opaque('d');
      b.whiteout('d/x');
    });
    expect(showLayer(layer)).toEqual({
      '': 'directory 755',
      gone: 'whiteout 0',
      d: 'directory 755 trusted.overlay.opaque=y',
      'd/x': 'whiteout 0',
    });
  });

  it('leave what the layer itself has there, whichever comes first', () => {
    const before = build((b) => {
      b.whiteout('f');
      addFile(b, 'f', 'new');
      b.whiteout('d');
      b.directory('d', attributes({ mode: 0o700 }));
      b.whiteout('e');
      b.fifo('e/x', attributes());
    });
    const after = build((b) => {
      addFile(b, 'f', 'new');
      b.whiteout('f');
      b.directory('d', attributes({ mode: 0o700 }));
      b.whiteout('d');
      b.fifo('e/x', attributes());
      b.whiteout('e');
    });
    expect(showLayer(before)).toEqual({
      '': 'directory 755',
      f: 'file 644 new',
      d: 'directory 700 trusted.overlay.opaque=y',
      e: 'directory 755 trusted.overlay.opaque=y',
      'e/x': 'fifo 644',
    });
    expect(after.built.layerId).toBe(before.built.layerId);
  });

  it('stay opaque when the directory is described again', () => {
    const layer = build((b) => {
      b.opaque('d');
      b.directory('d', attributes({ xattrs: xattrs({ 'user.a': 'b' }) }));
    });
    expect(showLayer(layer).d).toBe('directory 644 trusted.overlay.opaque=y user.a=b');
  });

  it('come also as plain devices 0:0 and as hard links to them', () => {
    const plain = build((b) => {
      b.device('a', attributes({ uid: 7 }), { kind: 'char', major: 0, minor: 0 });
      b.hardLink('b', 'a');
    });
    const marked = build((b) => {
      b.whiteout('a');
      b.whiteout('b');
    });
    expect(plain.built.layerId).toBe(marked.built.layerId);
  });

  it('cannot hide the root', () => {
    expect(codeOfFill((b) => b.whiteout(''))).toMatch(/^import-invalid/);
    expect(codeOfFill((b) => b.opaque(''))).toMatch(/^import-invalid/);
  });
});

describe('whiteouts that are applied', () => {
  it('remove only what earlier image layers put there', () => {
    const layer = build((b) => {
      addFile(b, 'd/old', 'old');
      addFile(b, 'd/both', 'old');
      addFile(b, 'f', 'old');
      b.nextSourceLayer();
      addFile(b, 'd/new', 'new');
      b.whiteout('d/new');
      b.whiteout('d/old');
      addFile(b, 'd/both', 'new');
      b.opaque('d');
      b.whiteout('f');
      b.whiteout('missing/and/deep');
    }, applying);
    expect(showLayer(layer)).toEqual({
      '': 'directory 755',
      d: 'directory 755',
      'd/both': 'file 644 new',
      'd/new': 'file 644 new',
    });
  });

  it('give the same tree wherever they stand in their archive', () => {
    const lower = (b: LayerBuilder) => {
      b.directory('d', attributes({ mode: 0o700, uid: 5 }));
      addFile(b, 'd/e/old', 'old');
      addFile(b, 'd/f', 'old');
      b.nextSourceLayer();
    };
    const first = build((b) => {
      lower(b);
      b.whiteout('d');
      addFile(b, 'd/e/new', 'new');
    }, applying);
    const last = build((b) => {
      lower(b);
      addFile(b, 'd/e/new', 'new');
      b.whiteout('d');
    }, applying);
    expect(showLayer(first)).toEqual({
      '': 'directory 755',
      d: 'directory 755',
      'd/e': 'directory 755',
      'd/e/new': 'file 644 new',
    });
    expect(last.built.layerId).toBe(first.built.layerId);
  });

  it('keep a name that a later image layer linked to a removed file', () => {
    const layer = build((b) => {
      addFile(b, 'a', 'text');
      b.nextSourceLayer();
      b.hardLink('b', 'a');
      b.whiteout('a');
    }, applying);
    expect(showLayer(layer)).toEqual({ '': 'directory 755', b: 'file 644 text' });
  });

  it('empty the whole tree below an opaque root', () => {
    const layer = build((b) => {
      addFile(b, 'a/b', 'old');
      b.nextSourceLayer();
      addFile(b, 'c', 'new');
      b.opaque('');
    }, applying);
    expect(showLayer(layer)).toEqual({ '': 'directory 755', c: 'file 644 new' });
  });

  it('cost one walk for any number of marks on one tree', () => {
    const layer = build((b) => {
      for (let index = 0; index < 5000; index += 1) b.fifo(`d/${index}`, attributes());
      b.nextSourceLayer();
      for (let index = 0; index < 5000; index += 1) b.fifo(`d/n${index}`, attributes());
      for (let index = 0; index < 5000; index += 1) b.whiteout('d');
    }, applying);
    expect(layer.built.stats.entries).toBe(5001);
  });
});

describe('refusals', () => {
  it.each([
    ['/a', 'is not a relative path'],
    ['a/', 'is not a relative path'],
    ['a//b', 'is not a relative path'],
    ['./a', 'is not a relative path'],
    ['a/../b', 'is not a relative path'],
    ['a\0b', 'a name has a character that is no byte'],
    ['\u0100', 'a name has a character that is no byte'],
    ['x'.repeat(256), 'a name has more than 255 bytes'],
    ['.dsec', "/.dsec is the platform's own"],
    ['.dsec/bin', "/.dsec is the platform's own"],
    ['', 'the root is a directory'],
  ])('path %j', (path, problem) => {
    const refused = codeOfFill((b) => b.fifo(path, attributes()));
    expect(refused).toMatch(/^import-invalid: /);
    expect(refused).toContain(problem);
  });

  it('of the reserved name hold for every kind of entry and mark', () => {
    for (const add of [
      (b: LayerBuilder) => b.whiteout('.dsec'),
      (b: LayerBuilder) => b.opaque('.dsec'),
      (b: LayerBuilder) => b.directory('.dsec', attributes()),
      (b: LayerBuilder) => b.symlink('.dsec', attributes(), '/tmp'),
      (b: LayerBuilder) => {
        b.fifo('f', attributes());
        b.hardLink('.dsec', 'f');
      },
    ]) {
      expect(codeOfFill(add)).toContain('import-invalid');
      expect(codeOfFill(add, applying)).toContain('import-invalid');
    }
    expect(codeOfFill((b) => b.fifo('usr/.dsec', attributes()))).toBe('nothing thrown');
  });

  it.each([
    [{ uid: 65_536 }, 'id 65536 is above 65535'],
    [{ gid: 4_294_967_295 }, 'id 4294967295 is above 65535'],
    [{ uid: -1 }, 'id -1 is above 65535'],
    [{ mode: 0o10000 }, 'mode 4096 is out of range'],
    [{ mtimeNsec: 1_000_000_000 }, 'is out of range'],
    [{ mtimeSec: 2 ** 53 }, 'is out of range'],
  ])('attributes %j', (change, problem) => {
    const refused = codeOfFill((b) => b.fifo('some/path', attributes(change)));
    expect(refused).toContain('import-invalid: "some/path": ');
    expect(refused).toContain(problem);
  });

  it('show a path without terminal escapes and cut', () => {
    const refused = codeOfFill((b) => b.fifo('\x1b[31mred', attributes({ uid: 70_000 })));
    expect(refused).toBe('import-invalid: "\\u{1b}[31mred": id 70000 is above 65535');
    const long = codeOfFill((b) => b.fifo('long/'.repeat(90), attributes()));
    expect(long.length).toBeLessThan(300);
  });

  it('of an ACL that names an id above 65535', () => {
    const acl = Buffer.from('02000000' + '01000600ffffffff' + '0200070070110100', 'hex');
    const rest = Buffer.from('04000400ffffffff' + '10000700ffffffff' + '20000400ffffffff', 'hex');
    const value = Buffer.concat([acl, rest]);
    const change = { xattrs: new Map([['system.posix_acl_access', value]]) };
    expect(codeOfFill((b) => b.fifo('f', attributes(change)))).toBe(
      'import-invalid: "f": system.posix_acl_access names an id above 65535',
    );
  });

  it.each(['', 'x'.repeat(4096), 'a\0b'])('link target %#', (target) => {
    expect(codeOfFill((b) => b.symlink('l', attributes(), target))).toContain('import-invalid');
  });

  it('of device numbers that the format cannot hold', () => {
    const device = { kind: 'block' as const, major: 4096, minor: 0 };
    expect(codeOfFill((b) => b.device('d', attributes(), device))).toContain('import-invalid');
  });

  it('of content that is not as long as announced', () => {
    const more = codeOfFill((b) => b.file('f', attributes(), 3).write(Buffer.from('four')));
    expect(more).toBe('import-invalid: "f": has more content than its size of 3 bytes');
    const less = codeOfFill((b) => b.file('f', attributes(), 3).end());
    expect(less).toBe('import-invalid: "f": ends 3 bytes before its size');
    const hole = codeOfFill((b) => b.file('f', attributes(), 3).hole(4));
    expect(hole).toContain('import-invalid');
  });

  it('of misuse are internal errors', () => {
    expect(
      codeOfFill((b) => {
        b.file('f', attributes(), 1);
        b.fifo('g', attributes());
      }),
    ).toMatch(/^internal/);
    expect(codeOfFill((b) => b.nextSourceLayer())).toMatch(/^internal/);
    expect(
      codeOfFill((b) => {
        b.finish();
        b.fifo('g', attributes());
      }),
    ).toMatch(/^internal/);
  });
});

describe('limits', () => {
  const limited = (change: Partial<typeof LIMITS>, fill: (b: LayerBuilder) => void) =>
    codeOfFill(fill, { limits: { ...LIMITS, ...change } });

  it.each<[Partial<typeof LIMITS>, (b: LayerBuilder) => void]>([
    [{ entriesMax: 3 }, (b) => b.fifo('a/b/c/d', attributes())],
    [{ entriesMax: 2 }, (b) => addEach(b, ['same', 'same', 'same'])],
    [{ depthMax: 2 }, (b) => b.fifo('a/b/c', attributes())],
    [{ fileBytesMax: 9 }, (b) => addFile(b, 'f', '0123456789')],
    [{ contentBytesMax: 15 }, (b) => addEach(b, ['f', 'g'])],
    [{ metaBytesMax: 2 ** 20 }, (b) => b.file('f', attributes(), 2 ** 44)],
    [{ metaBytesMax: 4096 }, (b) => b.fifo('f', attributes())],
    [
      { xattrBytesPerInodeMax: 20 },
      (b) => b.directory('d', attributes({ xattrs: xattrs({ 'user.a': 'x'.repeat(20) }) })),
    ],
    [
      { xattrBytesMax: 20 },
      (b) => addEach(b, ['d', 'e'], { xattrs: xattrs({ 'user.a': '0123456789' }) }),
    ],
    [{}, (b) => addFile(b, 'f', '', { xattrs: xattrs({ 'user.a': 'x'.repeat(65_536) }) })],
  ])('%j', (change, fill) => {
    expect(limited(change, fill)).toMatch(/^import-limit: /);
  });

  it('of the format hold whatever the caller allows', () => {
    const many = Object.fromEntries(
      Array.from({ length: 5 }, (_, n) => [`user.${n}`, 'x'.repeat(60_000)]),
    );
    const refused = limited({ xattrBytesPerInodeMax: 2 ** 30 }, (b) =>
      addFile(b, 'f', '', { xattrs: xattrs(many) }),
    );
    expect(refused).toMatch(/^import-limit: /);
  });

  it('count dedup sources', () => {
    const dedupSources = Array.from({ length: 17 }, () => ({
      blobId: 'sha256:0' as never,
      index: new Uint8Array(),
    }));
    const options = {
      blob: memoryBlob(),
      whiteouts: 'keep' as const,
      dedupSources,
      limits: LIMITS,
    };
    expect(codeOf(() => createLayerBuilder(options))).toMatch(/^invalid-argument/);
  });
});

describe('xattrs', () => {
  it('keep what a layer may carry and count the rest', () => {
    const layer = build((b) => {
      addFile(b, 'f', '', {
        xattrs: xattrs({
          'user.note': 'kept',
          'user.overlay.redirect': '/x',
          'trusted.overlay.redirect': '/answers',
          'trusted.overlay.metacopy': '',
          'security.selinux': 'label',
          'system.nfs4_acl': 'x',
          [`user.${'x'.repeat(251)}`]: 'too long a name',
        }),
      });
      b.directory('d', attributes({ xattrs: xattrs({ 'trusted.overlay.opaque': 'y' }) }));
    });
    expect(showLayer(layer)).toEqual({
      '': 'directory 755',
      f: 'file 644  user.note=kept',
      d: 'directory 644',
    });
    expect(layer.built.stats.droppedXattrs).toBe(7);
  });
});

describe('progress', () => {
  it('counts entries and content as they come', () => {
    const builder = createLayerBuilder({
      blob: memoryBlob(),
      whiteouts: 'keep',
      dedupSources: [],
      limits: LIMITS,
    });
    addFile(builder, 'a/b', 'text');
    expect(builder.progress).toEqual({ entries: 2, contentBytes: 4 });
  });
});

describe('the same input', () => {
  it('gives the same bytes in whatever order it comes', () => {
    const forward = build((b) => {
      for (const name of ['a', 'b', 'c']) b.fifo(name, attributes());
    });
    const backward = build((b) => {
      for (const name of ['c', 'b', 'a']) b.fifo(name, attributes());
    });
    expect(backward.built.layerId).toBe(forward.built.layerId);
    expect(openLayer(forward).superBlock.inodes).toBe(4);
  });
});
