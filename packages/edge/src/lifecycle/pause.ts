/**
 * Pause and resume: the intent is durable before the sandbox is touched, and has a deadline after which it
 * is undone, by this edge or by the next one (I8).
 */
import { asDsecError, DsecError, isEndState } from '@dsec/std';
import { startDeadline } from '@dsec/transport';
import { crashPoint } from '../crash-point.ts';
import type { Ends } from './end.ts';
import type { LiveSandbox } from './live-sandbox.ts';
import type { LifecycleParts } from './parts.ts';
import { createResumeLimits } from './resume-limit.ts';

export interface Pauses {
  /** Resolves when it is paused; at once when it is so. `freeze-timeout`, then it runs on. */
  pause(sandbox: LiveSandbox): Promise<void>;
  /** Resolves when it runs; at once when it does. `rate-limited`: it, or its job, was resumed too often. */
  resume(sandbox: LiveSandbox): Promise<void>;
  /** Undoes a change that an earlier edge began. */
  undo(sandbox: LiveSandbox): Promise<void>;
  /** Makes true what the journal says of one that was found: frozen when it is paused, else not. */
  restore(sandbox: LiveSandbox): Promise<void>;
}

export function createPauses(parts: LifecycleParts, ends: Ends): Pauses {
  const { registry, backend, times, clock } = parts;
  const limits = createResumeLimits(registry, clock);

  /** Thaws what may be frozen; a sandbox that cannot be thawed is over. */
  const thaw = async (sandbox: LiveSandbox, signal: AbortSignal) => {
    try {
      await within(times.resumeMs, signal, (s) => backend.resume(sandbox.key, s));
    } catch (thrown) {
      const error = asDsecError(thrown);
      signal.throwIfAborted();
      if (error.code !== 'state-conflict') ends.fail(sandbox, 'backend-failed', error);
    }
    if (!signal.aborted && !isEndState(sandbox.state)) registry.change(sandbox, 'running');
  };

  const pause = async (sandbox: LiveSandbox, signal: AbortSignal) => {
    if (sandbox.state === 'paused') return;
    registry.change(sandbox, 'pausing');
    crashPoint('pause.after-intent');
    try {
      await within(times.pauseMs, signal, (s) => backend.pause(sandbox.key, s));
    } catch (thrown) {
      if (!signal.aborted) await thaw(sandbox, signal);
      throw thrown;
    }
    crashPoint('pause.after-backend');
    registry.touch(sandbox);
    registry.change(sandbox, 'paused');
    crashPoint('pause.after-paused');
  };
  const resume = async (sandbox: LiveSandbox, signal: AbortSignal) => {
    if (sandbox.state === 'running') return;
    limits.take(sandbox);
    registry.change(sandbox, 'resuming');
    crashPoint('resume.after-intent');
    try {
      await within(times.resumeMs, signal, (s) => backend.resume(sandbox.key, s));
    } catch (thrown) {
      if (!signal.aborted) registry.change(sandbox, 'paused');
      throw thrown;
    }
    crashPoint('resume.after-backend');
    registry.touch(sandbox);
    registry.change(sandbox, 'running');
    crashPoint('resume.after-running');
  };

  return {
    pause: (sandbox) => sandbox.lane.run((signal) => pause(sandbox, signal)),
    resume: (sandbox) => sandbox.lane.run((signal) => resume(sandbox, signal)),
    undo: (sandbox) => sandbox.lane.run((signal) => thaw(sandbox, signal)),
    restore: (sandbox) => sandbox.lane.run((signal) => restore(parts, thaw, sandbox, signal)),
  };
}

async function within(ms: number, signal: AbortSignal, work: (s: AbortSignal) => Promise<void>) {
  const deadline = startDeadline(ms, signal);
  try {
    await work(deadline.signal);
  } finally {
    deadline.stop();
  }
}

async function restore(
  { registry, backend, times }: LifecycleParts,
  thaw: (sandbox: LiveSandbox, signal: AbortSignal) => Promise<void>,
  sandbox: LiveSandbox,
  signal: AbortSignal,
): Promise<void> {
  if (sandbox.state === 'paused') {
    try {
      await within(times.pauseMs, signal, (s) => backend.pause(sandbox.key, s));
    } catch {
      signal.throwIfAborted();
      // It runs, and cannot be kept from it: then that is what is said.
      registry.change(sandbox, 'resuming');
      return thaw(sandbox, signal);
    }
  } else {
    await thaw(sandbox, signal);
  }
  if (!isEndState(sandbox.state)) registry.announce(sandbox);
}

/** Why an operation that needs a running sandbox cannot be done. */
export function notRunning(sandbox: LiveSandbox): DsecError {
  const { state, endReason } = sandbox;
  const why = endReason === undefined || endReason === state ? state : `${state} (${endReason})`;
  return new DsecError('state-conflict', `the sandbox is ${why}`, {
    details: { state, ...(endReason === undefined ? {} : { endReason }) },
  });
}
