import { describe, expect, it } from 'vitest';
import { createLayerBuilder } from '../src/index.ts';
import { addFile, attributes, build, LIMITS, memoryBlob, openLayer } from './support/layers.ts';

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
