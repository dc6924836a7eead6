import { MOUNT_BITS } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { enforcementFacts, policyMounts, rulesOf } from '../src/policy-parts.ts';

describe('what a policy comes to for a container', () => {
  it('mounts are marked, so that another policy can take their place', () => {
    const [mount] = policyMounts({ mounts: [{ kind: 'mask', target: '/caf\xc3\xa9', flags: 14 }] });
    expect(mount).toEqual({
      kind: 'mask',
      target: Buffer.from('/café'),
      flags: 14 | MOUNT_BITS.policy,
    });
  });

  it('without system calls there is no program', () => {
    expect(rulesOf({ capabilities: 2, denials: [] })).toEqual({
      ...{ capabilities: 2, handledAccess: 0, trees: [] },
    });
  });

  it('trees are paths as bytes', () => {
    const landlock = { handledAccess: 2, rules: [{ path: '/é', access: 2 }] };
    expect(rulesOf({ capabilities: 0, denials: [], landlock })).toMatchObject({
      ...{ handledAccess: 2, trees: [{ path: Buffer.from('/é'), access: 2 }] },
    });
  });

  it('what containers of this node have to enforce with', () => {
    const facts = enforcementFacts();
    expect(facts.systemCalls?.has('openat')).toBe(true);
    expect(facts).toMatchObject({ hasAppArmor: false, deviceRules: 'none' });
  });
});
