/**
 * Another stage of a sandbox's policy. The intent is durable first. Then whatever could hold open what is
 * taken away is ended, the mounts are changed while nothing runs, and the agent is told what holds for all
 * that starts from then on; until then it starts nothing. A switch that was begun is never undone: it is
 * gone on with, by whoever needs the sandbox next, or by the next edge.
 */
import { comparePolicies, type PolicyChange } from '@dsec/policy';
import type { Stage } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { startDeadline } from '@dsec/transport';
import { crashPoint } from '../crash-point.ts';
import type { SettledPolicy } from '../policy/node-policies.ts';
import type { LiveSandbox } from './live-sandbox.ts';
import { applyStageNetwork, checkStageNetwork } from './network-rules.ts';
import type { LifecycleParts } from './parts.ts';
import { notRunning } from './pause.ts';
import { policyIn, withPolicy } from './sandbox-policy.ts';

export interface StageSwitches {
  /**
   * Resolves when the rules of the stage hold. `permission-denied` for one that allows more, unless
   * `mayLoosen`; `unsupported` for one that this node cannot enforce: then nothing is changed.
   */
  set(sandbox: LiveSandbox, stage: Stage, mayLoosen: boolean): Promise<void>;
  /** Goes on with a switch that was begun, if there is one. */
  finish(sandbox: LiveSandbox): Promise<void>;
}

export const isSwitching = ({ moving }: LiveSandbox) => moving.policy?.next !== undefined;

/** A launcher that is started again meanwhile. */
const RETRY_MS = 100;
const LOOSENINGS_SHOWN = 4;

export function createStageSwitches(parts: LifecycleParts): StageSwitches {
  return {
    set: (sandbox, stage, mayLoosen) =>
      sandbox.lane.run(async (signal) => {
        if (sandbox.state !== 'running') throw notRunning(sandbox);
        if (isSwitching(sandbox)) await complete(parts, sandbox, signal);
        if (stage === sandbox.stage) return;
        begin(parts, sandbox, stage, mayLoosen);
        crashPoint('stage.after-intent');
        await complete(parts, sandbox, signal);
      }),
    finish: (sandbox) =>
      sandbox.lane.run(async (signal) => {
        if (isSwitching(sandbox)) await complete(parts, sandbox, signal);
      }),
  };
}

function begin(parts: LifecycleParts, sandbox: LiveSandbox, next: Stage, mayLoosen: boolean): void {
  if (parts.policies.backend === undefined) {
    throw new DsecError('unsupported', 'this backend enforces no policies');
  }
  const [from, to] = [policyIn(parts, sandbox, sandbox.stage), policyIn(parts, sandbox, next)];
  const change = comparePolicies(from.policy, to.policy);
  if (!change.isTightening && !mayLoosen) throw loosening(next, change);
  checkStageNetwork(sandbox, from.network, to.network, parts);
  const { stage } = sandbox;
  parts.registry.change(sandbox, 'running', {
    policy: { ...(stage === undefined ? {} : { stage }), next },
  });
}

function loosening(next: Stage, { loosenings }: PolicyChange): DsecError {
  const shown = loosenings
    .slice(0, LOOSENINGS_SHOWN)
    .map(({ section, what }) => `${section}: ${what}`);
  const what = shown.length === 0 ? 'too much differs to say that it does not' : shown.join('; ');
  return new DsecError(
    'permission-denied',
    `stage ${next} allows more than the present one (${what}): this needs a key with policies:loosen`,
    { details: { scope: 'policies:loosen', stage: next } },
  );
}

async function complete(parts: LifecycleParts, sandbox: LiveSandbox, signal: AbortSignal) {
  const deadline = startDeadline(parts.times.pauseMs, signal);
  try {
    await takeSteps(parts, sandbox, deadline.signal);
  } finally {
    deadline.stop();
  }
}

async function takeSteps(parts: LifecycleParts, sandbox: LiveSandbox, signal: AbortSignal) {
  const { agents, registry, policies } = parts;
  const { moving, key } = sandbox;
  const { stage, next } = moving.policy ?? {};
  if (next === undefined) return;
  const [from, to] = [policyIn(parts, sandbox, stage), policyIn(parts, sandbox, next)];
  const { endsSessions } = comparePolicies(from.policy, to.policy);
  const remounts = mountsOf(from) !== mountsOf(to);
  // While mounts are changed, nobody may see what lies below those that stay.
  if (endsSessions || remounts) {
    await agents.quiesce?.(key, signal);
    registry.quiesced(sandbox);
  }
  crashPoint('stage.after-quiesce');
  await applyStageNetwork(sandbox, from.network, to.network, parts);
  if (remounts) await applyMounts(parts, sandbox, to, signal);
  crashPoint('stage.after-mounts');
  await agents.setRules?.(key, policies.rulesOf(to), signal);
  crashPoint('stage.after-rules');
  const { runtime } = sandbox;
  registry.change(sandbox, 'running', {
    policy: { stage: next },
    ...(runtime === undefined
      ? {}
      : { runtime: { ...runtime, protections: withPolicy(runtime.protections, to) } }),
  });
}

const mountsOf = ({ planned }: SettledPolicy) => JSON.stringify(planned?.mounts ?? []);

async function applyMounts(
  { policies, clock }: LifecycleParts,
  { key }: LiveSandbox,
  { planned }: SettledPolicy,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      await policies.backend?.apply(key, planned ?? { mounts: [] }, signal);
      return;
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof DsecError) || thrown.code !== 'unavailable') throw thrown;
      await clock.sleep(RETRY_MS, signal);
    }
  }
}
