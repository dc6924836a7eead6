import {
  DAY_MS,
  formatBytes,
  formatDuration,
  GIB,
  HOUR_MS,
  KIB,
  MIB,
  MINUTE_MS,
  SECOND_MS,
} from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

describe('units', () => {
  it('are what they are called', () => {
    expect([KIB, MIB, GIB]).toEqual([2 ** 10, 2 ** 20, 2 ** 30]);
    expect([SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS]).toEqual([1e3, 6e4, 36e5, 864e5]);
  });
});

describe('formatBytes', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1.0 KiB'],
    [1536, '1.5 KiB'],
    [-1536, '-1.5 KiB'],
    [99.94 * KIB, '99.9 KiB'],
    [99.97 * KIB, '100 KiB'],
    [MIB - 1, '1.0 MiB'],
    [64 * GIB, '64.0 GiB'],
    [2 ** 63, '8192 PiB'],
  ])('%d is %s', (bytes, expected) => {
    expect(formatBytes(bytes)).toBe(expected);
  });

  it('never shows 1024 of a unit that has a next one, and is right to 5 %', () => {
    const factors = new Map([
      ['B', 1],
      ['KiB', KIB],
      ['MiB', MIB],
      ['GiB', GIB],
      ['TiB', 2 ** 40],
    ]);
    fc.assert(
      fc.property(fc.nat({ max: 2 ** 49 }), (bytes) => {
        const [value = '', unit = ''] = formatBytes(bytes).split(' ');
        expect(Number(value)).toBeLessThan(1024);
        const shown = Number(value) * (factors.get(unit) ?? Number.NaN);
        expect(Math.abs(shown - bytes)).toBeLessThanOrEqual(bytes * 0.05);
      }),
      { seed: 1 },
    );
  });
});

describe('formatDuration', () => {
  it.each([
    [0, '0.0 ms'],
    [9.949, '9.9 ms'],
    [9.96, '10 ms'],
    [850, '850 ms'],
    [999.4, '999 ms'],
    [999.7, '1.0 s'],
    [1500, '1.5 s'],
    [59_940, '59.9 s'],
    [59_999, '1m 0s'],
    [90_500, '1m 30s'],
    [HOUR_MS - 1, '59m 59s'],
    [HOUR_MS, '1h 0m'],
    [26.5 * HOUR_MS, '26h 30m'],
  ])('%d ms is %s', (ms, expected) => {
    expect(formatDuration(ms)).toBe(expected);
  });

  it('never shows 60 minutes or seconds, nor 1000 ms', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 10 * HOUR_MS, noNaN: true }), (ms) => {
        expect(formatDuration(ms)).not.toMatch(/\b60(\.0)?[ms]|\b60\.0 s|1000/);
      }),
      { seed: 1 },
    );
  });
});
