import type { Stage } from '@dsec/protocol';
import type { SettledPolicy } from '../policy/node-policies.ts';
import type { LiveSandbox } from './live-sandbox.ts';
import type { LifecycleParts } from './parts.ts';

/** The policy of a sandbox in one of its stages. */
export function policyIn(
  { policies }: Pick<LifecycleParts, 'policies'>,
  { spec, plan }: Pick<LiveSandbox, 'spec' | 'plan'>,
  stage: Stage | undefined,
): SettledPolicy {
  return policies.settle({
    ...{ choice: spec.policy, stage, hasTools: plan.tools !== undefined },
    allowDegraded: plan.allowDegraded,
  });
}

/** With what the policy adds in the place of what an earlier stage had added. */
export function withPolicy<T extends { readonly name: string }>(
  protections: readonly T[],
  { protections: added }: { readonly protections: readonly T[] },
): T[] {
  return [...protections.filter(({ name }) => !/^policy(-|$)/.test(name)), ...added];
}
