/** Policies of containers: mounts by the launcher, the rest by the agent as it is told. */
import type { BackendPolicies, PlannedPolicy, SandboxKey } from '@dsec/backend';
import { enforcementFacts, policyMounts, rulesOf } from './policy-parts.ts';
import { freezeSandbox, thawSandbox } from './sandbox-control.ts';
import { type BackendContext, objectKey, requireRunning } from './sandbox-life.ts';

export function createPolicies(context: BackendContext): BackendPolicies {
  return {
    facts: enforcementFacts(),
    rulesOf,
    apply: (key, policy, signal) => applyPolicy(context, key, policy, signal),
  };
}

async function applyPolicy(
  context: BackendContext,
  key: SandboxKey,
  policy: PlannedPolicy,
  signal?: AbortSignal,
): Promise<void> {
  const life = requireRunning(context, key);
  await freezeSandbox(context, key, signal);
  try {
    const client = await context.link.client(signal);
    await client.remount({ ...objectKey(key), mounts: policyMounts(policy) }, signal);
    life.plan = { ...life.plan, policy };
  } finally {
    // Without the signal: whoever gave up must not leave it stopped.
    if (life.state === 'running') await thawSandbox(context, key);
  }
}
