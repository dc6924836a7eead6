import { asDsecError, DsecError, type EndReason, isEndState } from '@dsec/std';
import { startDeadline } from '@dsec/transport';
import { crashPoint } from '../crash-point.ts';
import type { Deadlines } from './deadlines.ts';
import type { Ends } from './end.ts';
import type { LiveSandbox } from './live-sandbox.ts';
import type { LifecycleParts } from './parts.ts';
import { makeSandbox } from './steps.ts';

/** Makes a sandbox whose intent is durable, whoever waits for it. Sets `born`. */
export function startCreation(
  sandbox: LiveSandbox,
  parts: LifecycleParts,
  { ends, deadlines }: { readonly ends: Ends; readonly deadlines: Deadlines },
): void {
  const { admission, registry, clock, times } = parts;
  const create = async (signal: AbortSignal) => {
    const deadline = startDeadline(times.createMs, signal);
    try {
      const runtime = await makeSandbox(sandbox, parts, deadline.signal);
      // Aborted in the last moment: what interrupted it has the word.
      signal.throwIfAborted();
      registry.change(sandbox, 'running', {
        runtime,
        timings: { ...sandbox.moving.timings, readyMs: elapsedMs(sandbox, clock.monotonicMs()) },
      });
      admission.started(sandbox.id);
      crashPoint('create.after-running');
    } finally {
      deadline.stop();
    }
  };
  sandbox.born = sandbox.lane.run(create).catch((thrown: unknown) => {
    const error = asDsecError(thrown);
    ends.fail(sandbox, endReasonOf(error), error);
    throw isEndState(sandbox.state) ? (sandbox.error ?? error) : error;
  });
  sandbox.born.catch(() => undefined);
  deadlines.arm(sandbox);
}

export function elapsedMs(sandbox: LiveSandbox, nowMonotonicMs: number): number {
  return Math.max(0, nowMonotonicMs - (sandbox.requestedMonotonicMs ?? nowMonotonicMs));
}

function endReasonOf({ code }: DsecError): EndReason {
  if (code === 'agent-lost') return 'agent';
  if (code === 'protocol') return 'protocol';
  return 'backend-failed';
}

/**
 * What a caller is told of a sandbox that was made before: nothing when it came to run, whatever became of
 * it; else the error that its creation ended with.
 */
export function throwIfNeverBorn(sandbox: LiveSandbox): void {
  if (sandbox.state === 'creating' || sandbox.runtime !== undefined) return;
  throw (
    sandbox.error ??
    new DsecError('cancelled', 'the sandbox was stopped before it was ready', {
      details: { sandbox: sandbox.id },
    })
  );
}
