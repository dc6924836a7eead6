/** From creation to the end: the service behind the routes of a sandbox's life. */
import type { NetworkUpdate, SandboxCreate, Stage, Ttl } from '@dsec/protocol';
import { DsecError, isEndState, orAborted } from '@dsec/std';
import { startDeadline } from '@dsec/transport';
import type { OperationContext } from '../operation.ts';
import type { RequireRunningOptions, SandboxEntry, Sandboxes } from '../sandboxes.ts';
import { type CreateContext, type CreationOptions, createCreation } from './creation.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';
import { createEnds, type Ends } from './end.ts';
import type { LiveSandbox } from './live-sandbox.ts';
import { updateNetwork } from './network-rules.ts';
import type { LifecycleParts } from './parts.ts';
import { createPauses, notRunning, type Pauses } from './pause.ts';
import { type Recovery, recoverSandboxes } from './recover.ts';
import { createStageSwitches, isSwitching } from './stage-switch.ts';

export interface Lifecycle extends Pick<Sandboxes, 'requireRunning' | 'fail'> {
  /**
   * Makes a sandbox, or finds the one that the key has made, and waits until it is allocated or ready. The
   * sandbox is made even when the caller goes: its key, or the list, finds it. Rejects with why it never
   * ran, with `overloaded` when the node takes no more, and with what is wrong with the request.
   */
  create(request: SandboxCreate, context: CreateContext): Promise<SandboxEntry>;
  /** Resolves when nothing of it is left. An end goes on when its caller goes. */
  stop(entry: SandboxEntry, context: OperationContext): Promise<void>;
  /** Resolves when it is paused. `freeze-timeout`: it would not be frozen, and runs on. */
  pause(entry: SandboxEntry, context: OperationContext): Promise<void>;
  resume(entry: SandboxEntry, context: OperationContext): Promise<void>;
  /** Sets what ends it, counted from now; ends its grace time. */
  renew(entry: SandboxEntry, ttl: Ttl, context: OperationContext): Promise<void>;
  /**
   * Replaces what it may reach. Resolves when nothing else is open. `conflict`: others than those of the
   * version that is named are in force.
   */
  updateNetwork(
    entry: SandboxEntry,
    update: NetworkUpdate,
    context: OperationContext,
  ): Promise<void>;
  /** See `StageSwitches.set`. A paused sandbox is resumed. */
  setStage(
    entry: SandboxEntry,
    stage: Stage,
    mayLoosen: boolean,
    context: OperationContext,
  ): Promise<void>;
  /** Once, before anything else. */
  recover(signal: AbortSignal): Promise<Recovery>;
  /** Resolves when no change of a sandbox is in work. */
  idle(): Promise<void>;
}

export function createLifecycle(parts: LifecycleParts, options: CreationOptions): Lifecycle {
  const { registry, times } = parts;
  const ends = createEnds(parts);
  const pauses = createPauses(parts, ends);
  const switches = createStageSwitches(parts);
  const deadlines = endingDeadlines(parts, ends);
  watchExits(parts, ends);
  const changed =
    (work: Pauses['pause']) => async (entry: SandboxEntry, context: OperationContext) =>
      orAborted(work(registry.get(entry.id)), context.signal);

  return {
    create: createCreation(parts, options, { ends, deadlines }),
    async stop({ id }, { signal }) {
      const patience = startDeadline(times.stopWaitMs, signal);
      try {
        await orAborted(ends.stop(registry.get(id), 'stopped'), patience.signal);
      } finally {
        patience.stop();
      }
    },
    pause: changed(pauses.pause),
    resume: changed(pauses.resume),
    renew: async ({ id }, ttl) => renew(registry.get(id), ttl, parts, deadlines),
    updateNetwork: ({ id }, update, { signal }) =>
      orAborted(updateNetwork(registry.get(id), update, parts), signal),
    async setStage({ id }, stage, mayLoosen, { signal }) {
      const sandbox = registry.get(id);
      await requireRunning(sandbox, { signal, startsCommand: false }, registry, pauses);
      await orAborted(switches.set(sandbox, stage, mayLoosen), signal);
    },
    async requireRunning(id, wanted) {
      const sandbox = registry.get(id);
      await requireRunning(sandbox, wanted, registry, pauses);
      if (isSwitching(sandbox)) await orAborted(switches.finish(sandbox), wanted?.signal);
      return sandbox;
    },
    fail: (entry, reason, error) => ends.fail(registry.get(entry.id), reason, error),
    recover: (signal) => recoverSandboxes(parts, { ends, deadlines, pauses, switches }, signal),
    async idle() {
      const busy = [...registry.list()].map(({ lane, ending }) => ending ?? lane.idle());
      await Promise.allSettled(busy);
    },
  };
}

function endingDeadlines({ registry, clock, wheel }: LifecycleParts, ends: Ends): Deadlines {
  return createDeadlines(wheel, {
    noteUse: registry.touch,
    beginGrace(sandbox) {
      const graceEndsBootMs = clock.bootMs() + (sandbox.ttl.graceMs ?? 0);
      registry.change(sandbox, sandbox.state, { graceEndsBootMs });
    },
    // It goes on by itself; when it could not even begin, the timer is set again.
    end: (sandbox) => void ends.stop(sandbox, 'ttl').catch(() => undefined),
  });
}

function renew(
  sandbox: LiveSandbox,
  ttl: Ttl,
  { registry, clock }: LifecycleParts,
  deadlines: Deadlines,
): void {
  if (isEndState(sandbox.state) || sandbox.state === 'stopping') throw notRunning(sandbox);
  registry.touch(sandbox);
  const { lifetimeMs } = ttl;
  registry.change(sandbox, sandbox.state, {
    ...{ ttl, graceEndsBootMs: undefined },
    lifetimeEndsBootMs: lifetimeMs === undefined ? undefined : clock.bootMs() + lifetimeMs,
  });
  deadlines.arm(sandbox);
}

async function requireRunning(
  sandbox: LiveSandbox,
  { signal, startsCommand = false }: RequireRunningOptions = {},
  registry: LifecycleParts['registry'],
  pauses: Pauses,
): Promise<SandboxEntry> {
  while (sandbox.state !== 'running') {
    if (!['pausing', 'paused', 'resuming'].includes(sandbox.state)) throw notRunning(sandbox);
    await orAborted(pauses.resume(sandbox), signal);
  }
  if (startsCommand && sandbox.inGrace) {
    throw new DsecError('state-conflict', 'the time of the sandbox is up: it starts nothing more', {
      details: { state: sandbox.state, inGrace: true },
    });
  }
  registry.touch(sandbox);
  return sandbox;
}

function watchExits({ backend, registry }: LifecycleParts, ends: Ends): void {
  backend.onExit(({ key, reason, detail }) => {
    const sandbox = registry.find(key.id);
    if (sandbox === undefined || sandbox.generation !== key.generation) return;
    const error = new DsecError('agent-lost', detail.slice(0, 512), {
      details: { sandbox: key.id, endReason: reason },
    });
    ends.fail(sandbox, reason, error);
  });
}
