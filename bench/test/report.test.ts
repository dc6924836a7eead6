import { describe, expect, it } from 'vitest';
import { metric, percentile, ratios, renderReport } from '../src/report.ts';

describe('percentile', () => {
  it.each([
    [[1, 2, 3], 50, 2],
    [[1, 2, 3, 4], 50, 2.5],
    [[1, 2, 3, 4], 95, 4],
    [[7], 99, 7],
  ])('of %j at %d is %d', (values, percent, expected) => {
    expect(percentile(values, percent)).toBe(expected);
  });
});

describe('metric', () => {
  it('is the median with the least and the most', () => {
    expect(metric('a.b_ms', 'ms', 'lower', [3, 1, 2], 2)).toEqual({
      name: 'a.b_ms',
      value: 2,
      unit: 'ms',
      better: 'lower',
      goal: 2,
      runs: 3,
      min: 1,
      max: 3,
    });
  });
});

describe('ratios', () => {
  it('pairs run with run', () => {
    expect(ratios([2, 9], [1, 3])).toEqual([2, 3]);
  });
});

describe('renderReport', () => {
  it('says which goals were met and which missed', () => {
    const machine = {
      cpu: 'x',
      cpus: 2,
      memoryMib: 1,
      kernel: '6.18',
      distribution: 'd',
      node: 'v20',
      load1: 0,
    };
    const text = renderReport({
      bench: 'layers',
      machine,
      protections: [],
      upper: 'none',
      notes: ['a note'],
      metrics: [
        metric('fast.rate_per_s', '1/s', 'higher', [600], 500),
        metric('slow.p50_ms', 'ms', 'lower', [9], 6),
        metric('plain.count', '1', 'lower', [1]),
      ],
    });
    expect(text).toMatch(/fast\.rate_per_s .*≥ 500 {2}met/);
    expect(text).toMatch(/slow\.p50_ms .*≤ 6 {2}missed/);
    expect(text).toContain('- a note');
  });
});
