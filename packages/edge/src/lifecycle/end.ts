/**
 * The ends of a sandbox. A reason is durable before anything is done about it; then everything of the
 * sandbox is removed, however often that has to be tried, and its slot is free last.
 */
import { asDsecError, DsecError, type EndReason, isEndState } from '@dsec/std';
import { crashPoint } from '../crash-point.ts';
import type { LiveSandbox } from './live-sandbox.ts';
import { ENDED_MAX, type LifecycleParts } from './parts.ts';
import { unmakeSandbox } from './steps.ts';

export interface Ends {
  /**
   * Begins to stop a sandbox, or goes on with its end. Resolves when nothing of it is left. Throws the
   * journal's errors, and then nothing was done.
   */
  stop(sandbox: LiveSandbox, reason: 'stopped' | 'ttl'): Promise<void>;
  /** It is over by itself. Does nothing to one that ends already. */
  fail(sandbox: LiveSandbox, reason: EndReason, error: DsecError): void;
  /** Goes on with an end that an earlier edge began, or frees what an ended one still holds. */
  resume(sandbox: LiveSandbox): void;
  /** Nothing of it is left: writes so. */
  finish(sandbox: LiveSandbox): void;
}

const RETRY_MS_MIN = 250;
const RETRY_MS_MAX = 30_000;

export function createEnds(parts: LifecycleParts): Ends {
  const { clock, journal, registry, slots, admission, wheel, times, closing, report } = parts;
  /** In the order of their ends. */
  const ended = new Set<LiveSandbox>();

  /** Does `work` until it succeeds or the edge closes. */
  const insist = async (what: string, sandbox: LiveSandbox, work: () => Promise<void> | void) => {
    for (let waitMs = RETRY_MS_MIN; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
      try {
        return await work();
      } catch (thrown) {
        closing.throwIfAborted();
        report(what, asDsecError(thrown), sandbox.id);
        await clock.sleep(waitMs, closing);
      }
    }
  };
  const forget = (sandbox: LiveSandbox) => {
    try {
      registry.forget(sandbox);
      ended.delete(sandbox);
      crashPoint('forget.after-row');
    } catch (thrown) {
      report('forget', asDsecError(thrown), sandbox.id);
      wheel.at(wheel.nowMs() + RETRY_MS_MAX, () => forget(sandbox));
    }
  };
  const keepListed = (sandbox: LiveSandbox) => {
    ended.add(sandbox);
    wheel.at(wheel.nowMs() + times.endedKeptMs, () => ended.has(sandbox) && forget(sandbox));
    const [oldest] = ended;
    if (ended.size > ENDED_MAX && oldest !== undefined) forget(oldest);
  };
  const finish = (sandbox: LiveSandbox) => {
    const { slot } = sandbox;
    journal.transaction(() => {
      if (slot !== undefined) slots.free(slot);
      if (sandbox.state === 'stopping') {
        registry.change(sandbox, 'stopped', { endedAtMs: clock.wallMs() });
      }
    });
    sandbox.slot = undefined;
    admission.remove(sandbox.id);
    keepListed(sandbox);
  };
  const remove = async (sandbox: LiveSandbox) => {
    await sandbox.lane.idle();
    await insist('remove', sandbox, () => unmakeSandbox(sandbox, parts));
    const isStop = sandbox.state === 'stopping';
    if (isStop) crashPoint('stop.after-backend');
    await insist('finish', sandbox, () => finish(sandbox));
    crashPoint(isStop ? 'stop.after-stopped' : 'end.after-cleanup');
  };
  const begin = (sandbox: LiveSandbox, reason: DsecError, first?: () => Promise<void>) => {
    sandbox.lane.interrupt(reason);
    sandbox.ending ??= (async () => {
      await first?.();
      await remove(sandbox);
    })();
    // Only closing ends it badly; whoever waits for it is told.
    sandbox.ending.catch(() => undefined);
    return sandbox.ending;
  };

  return {
    finish,
    async stop(sandbox, reason) {
      if (isEndState(sandbox.state)) {
        await sandbox.ending;
        return;
      }
      if (sandbox.state !== 'stopping') {
        registry.change(sandbox, 'stopping', { endReason: reason });
        crashPoint('stop.after-intent');
      }
      await begin(sandbox, new DsecError('cancelled', 'the sandbox is being stopped'));
    },
    fail(sandbox, reason, error) {
      if (sandbox.ending !== undefined || isEndState(sandbox.state)) return;
      const record = () => {
        if (isEndState(sandbox.state)) return;
        registry.change(sandbox, 'failed', {
          ...{ endReason: reason, error, endedAtMs: clock.wallMs() },
        });
        crashPoint('end.after-failed');
      };
      try {
        record();
        void begin(sandbox, error);
      } catch (thrown) {
        report('record', asDsecError(thrown), sandbox.id);
        void begin(sandbox, error, () => insist('record', sandbox, record));
      }
    },
    resume(sandbox) {
      void begin(sandbox, new DsecError('cancelled', 'the sandbox has ended'));
    },
  };
}
