import { DsecError, MIB } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { chooseUpper } from '../src/upper-choice.ts';
import { planWith } from './support/plans.ts';

const limits = (memoryMib: number, diskMib: number) => ({
  ...planWith().limits,
  memoryBytes: memoryMib * MIB,
  diskBytes: diskMib * MIB,
});

describe('chooseUpper', () => {
  it.each([
    ['fits', 256, 200, ['tmpfs', 'image'], 'tmpfs'],
    ['just fits', 256, 208, ['tmpfs', 'image'], 'tmpfs'],
    ['does not fit', 256, 209, ['tmpfs', 'image'], 'image'],
    ['is larger', 256, 1024, ['tmpfs', 'btrfs', 'image'], 'image'],
    ['fits where nothing is in memory', 256, 16, ['image'], 'image'],
  ] as const)('%s: %i MiB of memory, %i of disk', (_, memory, disk, drivers, driver) => {
    expect(chooseUpper(limits(memory, disk), drivers, false)).toEqual({ driver, fitsMemory: true });
  });

  it('refuses what it cannot keep, unless it may be less', () => {
    const wish = limits(256, 1024);
    expect(() => chooseUpper(wish, ['tmpfs'], false)).toThrow(DsecError);
    expect(chooseUpper(wish, ['tmpfs'], true)).toEqual({ driver: 'tmpfs', fitsMemory: false });
    expect(() => chooseUpper(wish, ['tmpfs', 'btrfs'], false)).toThrow(DsecError);
    expect(chooseUpper(wish, ['btrfs'], true)).toEqual({ driver: 'btrfs', fitsMemory: true });
  });
});
