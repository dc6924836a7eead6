import type { DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { checkProtections, protectionsOf } from '../src/protections.ts';
import { bare, nodeWith, pure } from './support/plans.ts';

const fits = { driver: 'tmpfs', fitsMemory: true } as const;

const stateOf = (name: string, protections: ReturnType<typeof protectionsOf>) =>
  protections.find((protection) => protection.name === name)?.state;

function refusal(work: () => void): DsecError | undefined {
  try {
    work();
    return undefined;
  } catch (thrown) {
    return thrown as DsecError;
  }
}

describe('protectionsOf', () => {
  it('has the same names on every node', () => {
    const names = [nodeWith(), nodeWith({ cgroups: pure }), nodeWith({ cgroups: bare })].map(
      (node) => protectionsOf(node, fits).map(({ name }) => name),
    );
    expect(names[1]).toEqual(names[0]);
    expect(names[2]).toEqual(names[0]);
    expect(new Set(names[0]).size).toBe(names[0]?.length);
  });

  it('says what the node lacks', () => {
    const protections = protectionsOf(nodeWith({ cgroups: bare }), fits);
    for (const name of ['cpu-limit', 'memory-limit', 'pids-limit']) {
      expect(stateOf(name, protections)).toBe('absent');
    }
    const without = { ...nodeWith().cgroups, swapAccounting: false };
    const memory = stateOf('memory-limit', protectionsOf(nodeWith({ cgroups: without }), fits));
    expect(memory).toBe('degraded');
  });

  it('says when a full disk can be the end of a process', () => {
    const upper = { driver: 'tmpfs', fitsMemory: false } as const;
    expect(stateOf('disk-limit', protectionsOf(nodeWith(), fits))).toBe('enforced');
    expect(stateOf('disk-limit', protectionsOf(nodeWith(), upper))).toBe('degraded');
    const btrfs = { driver: 'btrfs', fitsMemory: true } as const;
    expect(stateOf('disk-limit', protectionsOf(nodeWith(), btrfs))).toBe('degraded');
  });
});

describe('checkProtections', () => {
  const full = protectionsOf(nodeWith(), fits);
  const shared = protectionsOf(nodeWith(), fits, false, 'node');
  const lacking = protectionsOf(nodeWith({ cgroups: bare }), fits);

  it.each([
    [full, [], false, undefined],
    [full, ['seccomp', 'memory-limit'], false, undefined],
    [full, ['no-such-thing'], true, 'no-such-thing'],
    [full, ['layer-isolation'], false, undefined],
    [shared, ['layer-isolation'], true, 'layer-isolation'],
    [lacking, [], false, 'cpu-limit'],
    [lacking, [], true, undefined],
    [lacking, ['pids-limit'], true, 'pids-limit'],
  ])('case %#', (protections, required, allowDegraded, refused) => {
    const error = refusal(() => checkProtections(protections, required, allowDegraded));
    expect(error?.details.protection).toBe(refused);
    if (refused !== undefined) expect(error?.code).toBe('unsupported');
  });
});
