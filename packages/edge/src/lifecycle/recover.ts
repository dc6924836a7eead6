/**
 * What a restarted edge does before it serves: it says what the journal claims, the backend makes it true,
 * and the journal is told (THREATS §2.3). Every part may be interrupted and done again.
 */
import type { SandboxClaim, SandboxRecovery } from '@dsec/backend';
import { asDsecError, DsecError, type EndReason, isEndState } from '@dsec/std';
import type { Deadlines } from './deadlines.ts';
import type { Ends } from './end.ts';
import { type LiveSandbox, networkedOf } from './live-sandbox.ts';
import type { LifecycleParts } from './parts.ts';
import type { Pauses } from './pause.ts';
import { isSwitching, type StageSwitches } from './stage-switch.ts';

export interface Recovery {
  readonly running: number;
  readonly ended: number;
  /** Of this edge, but in no journal; now gone. */
  readonly destroyed: number;
}

export interface RecoverParts {
  readonly ends: Ends;
  readonly deadlines: Deadlines;
  readonly pauses: Pauses;
  readonly switches: StageSwitches;
}

/** Rejects when the backend cannot say what there is: an edge that does not know must not serve. */
export async function recoverSandboxes(
  parts: LifecycleParts,
  { ends, deadlines, pauses, switches }: RecoverParts,
  signal: AbortSignal,
): Promise<Recovery> {
  const { registry, table, slots, backend, admission, network, report } = parts;
  const rows = table.readAll();
  registry.restore(rows, slots.held);
  const bootIdOf = new Map(rows.map(({ id, bootId }) => [id, bootId]));
  const holding = [...registry.list()].filter(({ slot }) => slot !== undefined);
  for (const { id } of holding) admission.add(id);

  const sameBoot = (sandbox: LiveSandbox) => bootIdOf.get(sandbox.id) === parts.journal.bootId;
  const claims = holding.map((sandbox) => claimOf(sandbox, sameBoot(sandbox)));
  const truth = await backend.recover(claims, signal);
  const found = new Map(truth.sandboxes.map((recovery) => [recovery.key.id, recovery]));

  let running = 0;
  for (const sandbox of registry.list()) {
    const recovery = found.get(sandbox.id);
    if (recovery?.running === true && sameBoot(sandbox) && isAlive(sandbox)) {
      running += 1;
      await joinNetwork(parts, sandbox);
      takeUp(sandbox, recovery.frozen);
    } else {
      settle(sandbox, recovery);
    }
  }
  network.recovered();
  return { running, ended: rows.length - running, destroyed: truth.destroyed.length };

  function takeUp(sandbox: LiveSandbox, frozen: boolean): void {
    admission.started(sandbox.id);
    deadlines.arm(sandbox);
    if (sandbox.state === 'running' && isSwitching(sandbox)) {
      // Thawed only when the mounts are those of one stage; whoever needs it before goes on with it.
      registry.announce(sandbox);
      switches.finish(sandbox).catch((thrown) => report('stage', asDsecError(thrown), sandbox.id));
      return;
    }
    const isSettled = sandbox.state === 'running' || sandbox.state === 'paused';
    if (isSettled && frozen === (sandbox.state === 'paused')) {
      registry.announce(sandbox);
      return;
    }
    // A change that was cut off, or somebody else has frozen or thawed it meanwhile.
    const settling = isSettled ? pauses.restore(sandbox) : pauses.undo(sandbox);
    settling.catch((thrown) => report('undo', asDsecError(thrown), sandbox.id));
  }

  /** Nothing of it is left; where it is not known, the end is gone through once more. */
  function settle(sandbox: LiveSandbox, recovery: SandboxRecovery | undefined): void {
    if (!isEndState(sandbox.state) && sandbox.state !== 'stopping') {
      const { reason, error } = endOf(sandbox, recovery, sameBoot(sandbox));
      ends.fail(sandbox, reason, error);
    } else if (sandbox.slot === undefined || recovery?.running === false) {
      ends.finish(sandbox);
    } else {
      ends.resume(sandbox);
    }
  }
}

/** One that cannot be let through again reaches nothing, and runs on. */
async function joinNetwork(
  { network, report }: LifecycleParts,
  sandbox: LiveSandbox,
): Promise<void> {
  const networked = networkedOf(sandbox);
  if (networked === undefined) return;
  await network
    .add(networked)
    .catch((thrown) => report('network', asDsecError(thrown), sandbox.id));
}

/** Its processes may be running, and it is meant to run. */
function isAlive({ state, runtime }: LiveSandbox): boolean {
  return runtime !== undefined && state !== 'stopping' && !isEndState(state);
}

function claimOf(sandbox: LiveSandbox, sameBoot: boolean): SandboxClaim {
  const { plan, runtime } = sandbox;
  return sameBoot && isAlive(sandbox) && runtime !== undefined ? { plan, runtime } : { plan };
}

function endOf(
  sandbox: LiveSandbox,
  recovery: SandboxRecovery | undefined,
  sameBoot: boolean,
): { reason: EndReason; error: DsecError } {
  const details = (endReason: EndReason) => ({ details: { sandbox: sandbox.id, endReason } });
  if (!sameBoot) {
    const message = 'the machine of the sandbox was started again';
    return {
      reason: 'host-lost',
      error: new DsecError('agent-lost', message, details('host-lost')),
    };
  }
  if (sandbox.runtime === undefined) {
    const message =
      'the edge was started again while it made the sandbox; use a new key to try again';
    return {
      reason: 'edge-restart',
      error: new DsecError('unavailable', message, details('edge-restart')),
    };
  }
  const exit = recovery?.running === false ? recovery.exit : undefined;
  const reason = exit?.reason ?? 'killed';
  const message = exit?.detail ?? 'the sandbox ended while no edge looked after it';
  return { reason, error: new DsecError('agent-lost', message.slice(0, 512), details(reason)) };
}
