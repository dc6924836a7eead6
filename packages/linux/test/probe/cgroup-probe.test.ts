import { expect, it } from 'vitest';
import { probeCgroup, unifiedRoot } from '../../src/probe/cgroup-probe.ts';
import { debian13, hybrid, legacyCgroups } from './hosts.ts';

it('finds the v2 tree of pure and hybrid hosts', () => {
  expect(unifiedRoot(debian13.files)).toBe('/sys/fs/cgroup');
  expect(unifiedRoot(hybrid.files)).toBe('/sys/fs/cgroup/unified');
  expect(unifiedRoot(legacyCgroups.files)).toBeUndefined();
});

it('does not look for files where there is no v2 tree', async () => {
  expect(await probeCgroup(legacyCgroups.files)).toEqual({
    create: { state: 'untried', why: 'no cgroup v2 tree' },
    files: undefined,
    controllers: undefined,
  });
});
