/**
 * What makes a sandbox, in order. Each step can be undone by name alone, whether it was done, half done or
 * not at all (I1): so the end of a sandbox is every step undone in reverse, no matter how far its creation
 * came or which edge made it. A step to come (policy) is a row here.
 */
import type { SandboxRuntime } from '@dsec/backend';
import { type CrashPoint, crashPoint } from '../crash-point.ts';
import { requireEnforced } from '../network/network.ts';
import { requirePolicies } from '../policy/node-policies.ts';
import { type LiveSandbox, networkedOf } from './live-sandbox.ts';
import type { LifecycleParts } from './parts.ts';
import { policyIn, withPolicy } from './sandbox-policy.ts';

export interface Draft {
  runtime?: SandboxRuntime;
}

export interface Step {
  readonly name: string;
  readonly crash: CrashPoint;
  make(
    sandbox: LiveSandbox,
    draft: Draft,
    parts: LifecycleParts,
    signal: AbortSignal,
  ): Promise<void>;
  unmake(sandbox: LiveSandbox, parts: LifecycleParts): Promise<void>;
}

export const STEPS: readonly Step[] = [
  {
    name: 'backend',
    crash: 'create.after-backend',
    async make({ plan }, draft, { backend }, signal) {
      draft.runtime = await backend.create(plan, signal);
    },
    unmake: ({ key }, { backend }) => backend.stop(key),
  },
  {
    name: 'network',
    crash: 'create.after-network',
    async make(sandbox, draft, { network }, signal) {
      const networked = networkedOf(sandbox);
      if (networked === undefined || draft.runtime === undefined) return;
      const protections = await network.add(networked, signal);
      requireEnforced(protections, sandbox.spec.requireProtections ?? []);
      const { runtime } = draft;
      draft.runtime = { ...runtime, protections: [...runtime.protections, ...protections] };
    },
    unmake: ({ key }, { network }) => network.remove(key),
  },
  {
    name: 'agent',
    crash: 'create.after-hello',
    async make(sandbox, draft, parts, signal) {
      const { agents, policies } = parts;
      const { key, plan, spec, stage } = sandbox;
      await agents.connect(key, signal);
      const policy = policyIn(parts, sandbox, stage);
      requirePolicies(policy.protections, spec.requireProtections ?? []);
      if (plan.policy?.sessions !== undefined) {
        await agents.setRules?.(key, policies.rulesOf(policy), signal);
      }
      if (draft.runtime !== undefined) {
        const protections = withPolicy(draft.runtime.protections, policy);
        draft.runtime = { ...draft.runtime, protections };
      }
      if (plan.network !== undefined) await agents.setResolver?.(key, plan.network.gateway, signal);
    },
    async unmake({ key }, { agents }) {
      agents.drop(key);
    },
  },
];

export async function makeSandbox(
  sandbox: LiveSandbox,
  parts: LifecycleParts,
  signal: AbortSignal,
): Promise<SandboxRuntime | undefined> {
  const draft: Draft = {};
  for (const step of STEPS) {
    signal.throwIfAborted();
    await step.make(sandbox, draft, parts, signal);
    crashPoint(step.crash);
  }
  return draft.runtime;
}

/** Rejects with the first step that could not be undone; those after it, which it rests on, stay. */
export async function unmakeSandbox(sandbox: LiveSandbox, parts: LifecycleParts): Promise<void> {
  for (const step of [...STEPS].reverse()) await step.unmake(sandbox, parts);
}
