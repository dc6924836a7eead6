import { expect, it } from 'vitest';
import { LIMITS, sysctlPath } from '../../src/probe/limits.ts';

it('names each setting once and finds its file', () => {
  expect(new Set(LIMITS.map((row) => row.sysctl)).size).toBe(LIMITS.length);
  expect(sysctlPath('net.ipv4.neigh.default.gc_thresh3')).toBe(
    '/proc/sys/net/ipv4/neigh/default/gc_thresh3',
  );
});
