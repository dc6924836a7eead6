import { expect, it } from 'vitest';
import { parseMeminfo, readMemory } from '../src/memory.ts';

it('meminfo is read by kind, in KiB', () => {
  const text =
    'MemTotal:       24684544 kB\nSlab:  300 kB\nHugePages_Total:       0\nActive(anon): 7 kB\n';
  expect(parseMeminfo(text)).toEqual({ MemTotal: 24_684_544, Slab: 300, 'Active(anon)': 7 });
});

it('this host has memory', () => expect(readMemory().MemTotal).toBeGreaterThan(0));
