import { describe, expect, it } from 'vitest';
import { createSeries, formOfName } from '../src/series.ts';

describe('a series', () => {
  it('has a figure with its goal for each name, over all runs', () => {
    const series = createSeries({ 'create.edge.k1.rate_per_s': 500 });
    series.add('create.edge.k1.rate_per_s', 400);
    series.add('create.edge.k1.rate_per_s', 600);
    series.add('create.edge.k1.ready_p50_ms', undefined);
    expect(series.metrics()).toEqual([
      expect.objectContaining({ value: 500, min: 400, max: 600, runs: 2, unit: '1/s', goal: 500 }),
    ]);
  });
});

describe('the unit of a name', () => {
  it.each([
    ['exec.edge.stdout_mb_per_s', 'MB/s', 'higher'],
    ['create.edge.k16.rate_per_s', '1/s', 'higher'],
    ['create.cpu_ms_per_life', 'ms', 'lower'],
    ['density.n4000.slab.kib_per_sandbox', 'KiB', 'lower'],
    ['density.leftovers', 'count', 'lower'],
  ])('%s is %s, and %s is better', (name, unit, better) => {
    expect(formOfName(name)).toEqual({ unit, better });
  });

  it('is part of it', () => expect(() => formOfName('exec.edge.speed')).toThrow('no unit'));
});
