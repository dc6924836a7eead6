import { describe, expect, it } from 'vitest';
import { reencode } from '../src/index.ts';
import {
  addFile,
  attributes,
  build,
  LIMITS,
  noise,
  openLayer,
  showLayer,
  xattrs,
} from './support/layers.ts';

const layer = build((b) => {
  b.directory('', attributes({ mode: 0o711 }));
  addFile(b, 'd/f', noise(200_000, 1), { xattrs: xattrs({ 'user.a': 'b' }) });
  b.hardLink('d/g', 'd/f');
  const sink = b.file('sparse', attributes(), 10 * 2 ** 30);
  sink.hole(10 * 2 ** 30);
  sink.end();
  b.symlink('l', attributes(), 'd');
  b.device('n', attributes(), { kind: 'block', major: 8, minor: 300 });
  b.socket('s', attributes());
  b.whiteout('w');
  b.opaque('d');
});

describe('a layer that is encoded again', () => {
  it('is the same layer', () => {
    const again = build((b) => reencode(openLayer(layer), b, LIMITS));
    expect(again.built.layerId).toBe(layer.built.layerId);
    expect(again.blob.bytes.equals(layer.blob.bytes)).toBe(true);
  });

  it('into a whole tree loses its marks', () => {
    const whole = build((b) => reencode(openLayer(layer), b, LIMITS), { whiteouts: 'apply' });
    const paths = Object.keys(
      showLayer(
        build((b) => {
          addFile(b, 'd/f', '');
          for (const name of ['d/g', 'l', 'n', 's', 'sparse']) addFile(b, name, '');
        }),
      ),
    );
    expect(whole.built.stats.entries).toBe(paths.length - 1);
    expect(whole.built.treeDigest).not.toBe(layer.built.treeDigest);
  });

  it('stays within the limits of the builder', () => {
    const limits = { ...LIMITS, fileBytesMax: 2 ** 30 };
    expect(() => build((b) => reencode(openLayer(layer), b, LIMITS), { limits })).toThrow(
      'fileBytesMax',
    );
  });
});
