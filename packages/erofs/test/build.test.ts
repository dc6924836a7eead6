import { describe, expect, it } from 'vitest';
import type { LayerBuilder } from '../src/index.ts';
import { codeOfFill } from './support/codes.ts';
import { addFile, attributes, build, noise, showLayer, xattrs } from './support/layers.ts';

const applying = { whiteouts: 'apply' as const };

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
