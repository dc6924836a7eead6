/** What a sandbox with a link may reach, over its life. */
import type { NetworkRule, NetworkUpdate, SandboxCreate } from '@dsec/protocol';
import { DsecError, isEndState } from '@dsec/std';
import { crashPoint } from '../crash-point.ts';
import type { LiveSandbox } from './live-sandbox.ts';
import type { LifecycleParts } from './parts.ts';
import { notRunning } from './pause.ts';

/**
 * Replaces all rules of a sandbox, if those that the caller has seen are still in force. The new ones are
 * durable first, so that an edge that dies in between comes back with them, and without any connection.
 * `conflict`: another change came before, with the version in force in the details.
 */
export async function updateNetwork(
  sandbox: LiveSandbox,
  update: NetworkUpdate,
  parts: Pick<LifecycleParts, 'network' | 'registry'>,
): Promise<void> {
  const { network, registry } = parts;
  network.check(update.rules);
  await sandbox.lane.run(async () => {
    if (isEndState(sandbox.state) || sandbox.state === 'stopping') throw notRunning(sandbox);
    const now = sandbox.network;
    if (now === undefined) {
      throw new DsecError(
        'unsupported',
        'the sandbox has no network: rules can be changed where it was created with some',
        { details: { field: 'network' } },
      );
    }
    if (namesNetwork(sandbox.spec.policy)) {
      throw new DsecError(
        'state-conflict',
        'the rules are those of its policy: switch its stage, or create it with rules beside the policy',
        { details: { field: 'network', other: 'policy.network' } },
      );
    }
    // The same request again, whose answer was lost.
    if (now.version === update.version + 1 && isSame(now.rules, update.rules)) return;
    if (now.version !== update.version) throw otherRules(update.version, now.version);
    const next = { version: now.version + 1, rules: update.rules };
    registry.change(sandbox, sandbox.state, { network: next });
    registry.touch(sandbox);
    crashPoint('network.after-rules');
    await network.update({ key: sandbox.key, address: now.address, ...next });
    crashPoint('network.after-update');
  });
}

/** Whether a policy says what may be reached: itself or in a stage, be it that there is nothing. */
export function namesNetwork(policy: SandboxCreate['policy']): boolean {
  if (policy === undefined || typeof policy === 'string') return false;
  const stages = Object.values(policy.stages ?? {});
  return [policy, ...stages].some((part) => part?.network !== undefined);
}

/**
 * What another stage of the policy opens, in the place of what the present one does. Throws why that cannot
 * be, with nothing changed.
 */
export function checkStageNetwork(
  sandbox: Pick<LiveSandbox, 'network'>,
  from: readonly NetworkRule[],
  to: readonly NetworkRule[],
  { network }: Pick<LifecycleParts, 'network'>,
): void {
  if (isSame(from, to)) return;
  const now = sandbox.network;
  if (now === undefined && to.length === 0) return;
  if (now === undefined) {
    throw new DsecError(
      'unsupported',
      'the stage has network rules, and the sandbox no network: create it in a stage with some',
      { details: { field: 'policy.network' } },
    );
  }
  network.check(to);
}

/** Repeated after a crash, it does again what may not have been done. */
export async function applyStageNetwork(
  sandbox: LiveSandbox,
  from: readonly NetworkRule[],
  to: readonly NetworkRule[],
  { network, registry }: Pick<LifecycleParts, 'network' | 'registry'>,
): Promise<void> {
  const now = sandbox.network;
  if (now === undefined || isSame(from, to)) return;
  const version = isSame(now.rules, to) ? now.version : now.version + 1;
  const next = { version, rules: [...to] };
  if (version !== now.version) registry.change(sandbox, sandbox.state, { network: next });
  await network.update({ key: sandbox.key, address: now.address, ...next });
}

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

function otherRules(version: number, versionInForce: number): DsecError {
  const message = `rules of version ${versionInForce} are in force, not ${version}: look at them first`;
  return new DsecError('conflict', message, { details: { version, versionInForce } });
}
