/** What a policy takes from a container, as the launcher and the agent are told. */
import type { EnforcementFacts, PlannedPolicy, SessionPolicy } from '@dsec/backend';
import { probeSecurity } from '@dsec/linux';
import { MOUNT_BITS, type MountFields, type SessionRulesFields } from '@dsec/protocol';
import { compileDenials, systemCalls } from './seccomp-program.ts';

/** AppArmor profiles are not loaded, and nothing judges devices: masks take their place. */
export const enforcementFacts = (): EnforcementFacts => ({
  landlockAbi: probeSecurity().landlockAbi,
  hasAppArmor: false,
  deviceRules: 'none',
  hasSessionCapabilities: true,
  systemCalls: systemCalls(),
});

export const policyMounts = ({ mounts }: PlannedPolicy): MountFields[] =>
  mounts.map(({ kind, target, flags }) => ({
    kind,
    target: Buffer.from(target, 'latin1'),
    flags: flags | MOUNT_BITS.policy,
  }));

export function rulesOf({ capabilities, landlock, denials }: SessionPolicy): SessionRulesFields {
  const seccomp = compileDenials(denials);
  return {
    capabilities,
    handledAccess: landlock?.handledAccess ?? 0,
    trees: (landlock?.rules ?? []).map(({ path, access }) => ({ path: Buffer.from(path), access })),
    ...(seccomp === undefined ? {} : { seccomp }),
  };
}
