import { describe, expect, it } from 'vitest';
import { readXattrs, walkImage } from '../src/index.ts';
import { addFile, attributes, build, LIMITS, openLayer, xattrs } from './support/layers.ts';

describe('xattrs of many inodes', () => {
  it('are kept once', () => {
    const value = 'x'.repeat(1000);
    const of = (count: number) =>
      build((b) => {
        for (let index = 0; index < count; index += 1) {
          addFile(b, `${index}`, '', { xattrs: xattrs({ 'user.same': value }) });
        }
      });
    const growth = of(1000).built.meta.length - of(100).built.meta.length;
    expect(growth / 900).toBeLessThan(120);
    const image = openLayer(of(100));
    for (const { path, inode } of walkImage(image, LIMITS)) {
      if (path !== '') expect(readXattrs(image, inode).get('user.same')?.toString()).toBe(value);
    }
  });

  it('beyond 255 of one inode stay beside it', () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`user.${n}`, `${n}`]));
    const layer = build((b) => {
      for (const path of ['a', 'b']) addFile(b, path, '', { xattrs: xattrs(many) });
    });
    const image = openLayer(layer);
    for (const { path, inode } of walkImage(image, LIMITS)) {
      if (path !== '') expect(readXattrs(image, inode).size).toBe(300);
    }
  });

  it('may push the root out of its usual place', () => {
    const long = xattrs({ 'user.long': 'x'.repeat(3050) });
    const layer = build((b) => {
      b.directory('', attributes({ mode: 0o755, xattrs: long }));
      for (let index = 0; index < 10; index += 1) addFile(b, `${index}`.padStart(80, 'n'), '');
    });
    const image = openLayer(layer);
    expect(image.superBlock.rootNid).toBe(128);
    expect([...walkImage(image, LIMITS)]).toHaveLength(11);
  });

  it('do not depend on the order in which they came', () => {
    const of = (names: string[]) =>
      build((b) => {
        for (const path of ['a', 'b']) {
          addFile(b, path, '', { xattrs: xattrs(Object.fromEntries(names.map((n) => [n, n]))) });
        }
        addFile(b, 'c', '', { xattrs: xattrs({ 'user.z': 'user.z', 'user.own': '1' }) });
      });
    const forward = of(['user.a', 'user.m', 'user.z']);
    expect(of(['user.z', 'user.a', 'user.m']).built.layerId).toBe(forward.built.layerId);
  });
});
