import { describe, expect, it } from 'vitest';
import { createLayerBuilder, type InodeAttributes, type LayerBuilder } from '../src/index.ts';
import { codeOf, codeOfFill } from './support/codes.ts';
import {
  addFile,
  attributes,
  build,
  LIMITS,
  memoryBlob,
  showLayer,
  xattrs,
} from './support/layers.ts';

const applying = { whiteouts: 'apply' as const };

/** Files of ten bytes. */
function addEach(b: LayerBuilder, paths: string[], change: Partial<InodeAttributes> = {}): void {
  for (const path of paths) addFile(b, path, '0123456789', change);
}

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

  it('on memory hold while it fills, not only when the layer is encoded', () => {
    const refusedAt = (
      change: Partial<typeof LIMITS>,
      add: (b: LayerBuilder, n: number) => void,
    ) => {
      let added = 0;
      const refused = limited(change, (b) => {
        for (; added < 1000; added += 1) add(b, added);
      });
      expect(refused).toMatch(/^import-limit: /);
      return added;
    };
    const names = refusedAt({ metaBytesMax: 2 ** 16 }, (b, n) => {
      b.fifo(`${n}`.padEnd(255, 'x'), attributes());
    });
    expect(names).toBe(Math.floor(2 ** 16 / 255));
    const targets = refusedAt({ metaBytesMax: 2 ** 16 }, (b, n) => {
      b.symlink(`${n}`, attributes(), 't'.repeat(1000));
    });
    expect(targets).toBeLessThan(66);
    const memory = { memoryBytesMax: 2 ** 16 };
    const tiny = refusedAt(memory, (b, n) => {
      addFile(b, `${n}`, '', { xattrs: xattrs({ [`user.${n}`]: '' }) });
    });
    const directories = refusedAt(memory, (b, n) => b.directory(`${n}`, attributes()));
    const onTheWay = refusedAt(memory, (b, n) => b.fifo(`${n}/${n}/${n}`, attributes()));
    const chunks = refusedAt(memory, (b, n) => addFile(b, `${n}`, `${n}`));
    const files = refusedAt(memory, (b, n) => addFile(b, `${n}`, ''));
    expect(tiny).toBeLessThan(150);
    expect(directories).toBeLessThan(150);
    expect(onTheWay).toBeLessThan(directories / 2);
    expect(chunks).toBeLessThan(files);
    expect(files).toBeLessThan(300);
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
