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

/** Why what is being done with a sandbox gives way. One for all: each of its own would cost a stack trace. */
const STOPPING = new DsecError('cancelled', 'the sandbox is being stopped');
const ENDED = new DsecError('cancelled', 'the sandbox has ended');

const RETRY_MS_MIN = 250;
const RETRY_MS_MAX = 30_000;

/** What the functions of this file share. */
interface Endings {
  readonly parts: LifecycleParts;
  /** In the order of their ends. */
  readonly listed: Set<LiveSandbox>;
}

export function createEnds(parts: LifecycleParts): Ends {
  const endings: Endings = { parts, listed: new Set() };
  return {
    finish: (sandbox) => finish(endings, sandbox),
    async stop(sandbox, reason) {
      if (isEndState(sandbox.state)) {
        await sandbox.ending;
        return;
      }
      if (sandbox.state !== 'stopping') {
        parts.registry.change(sandbox, 'stopping', { endReason: reason });
        crashPoint('stop.after-intent');
      }
      await begin(endings, sandbox, STOPPING);
    },
    fail: (sandbox, reason, error) => fail(endings, sandbox, reason, error),
    resume(sandbox) {
      void begin(endings, sandbox, ENDED);
    },
  };
}

function fail(endings: Endings, sandbox: LiveSandbox, reason: EndReason, error: DsecError): void {
  if (sandbox.ending !== undefined || isEndState(sandbox.state)) return;
  const { clock, registry, report } = endings.parts;
  const record = () => {
    if (isEndState(sandbox.state)) return;
    const endedAtMs = clock.wallMs();
    registry.change(sandbox, 'failed', { endReason: reason, error, endedAtMs });
    crashPoint('end.after-failed');
  };
  try {
    record();
    void begin(endings, sandbox, error);
  } catch (thrown) {
    // Its end must not wait for a journal that is full.
    report('record', asDsecError(thrown), sandbox.id);
    const again = () => insist(endings.parts, 'record', sandbox, record);
    void begin(endings, sandbox, error, again);
  }
}

/** Begins its end, unless that has begun. What is being done with it gives way. */
function begin(
  endings: Endings,
  sandbox: LiveSandbox,
  reason: DsecError,
  first?: () => Promise<void>,
): Promise<void> {
  sandbox.lane.interrupt(reason);
  sandbox.ending ??= (async () => {
    await first?.();
    await remove(endings, sandbox);
  })();
  // Only closing ends it badly; whoever waits for it is told.
  sandbox.ending.catch(() => undefined);
  return sandbox.ending;
}

async function remove(endings: Endings, sandbox: LiveSandbox): Promise<void> {
  const { parts } = endings;
  await sandbox.lane.idle();
  await insist(parts, 'remove', sandbox, () => unmakeSandbox(sandbox, parts));
  const isStop = sandbox.state === 'stopping';
  if (isStop) crashPoint('stop.after-backend');
  await insist(parts, 'finish', sandbox, () => finish(endings, sandbox));
  crashPoint(isStop ? 'stop.after-stopped' : 'end.after-cleanup');
}

/** Does `work` until it succeeds or the edge closes. */
async function insist(
  { clock, closing, report }: LifecycleParts,
  what: string,
  sandbox: LiveSandbox,
  work: () => Promise<void> | void,
): Promise<void> {
  for (let waitMs = RETRY_MS_MIN; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
    try {
      return await work();
    } catch (thrown) {
      closing.throwIfAborted();
      report(what, asDsecError(thrown), sandbox.id);
      await clock.sleep(waitMs, closing);
    }
  }
}

function finish(endings: Endings, sandbox: LiveSandbox): void {
  const { journal, slots, registry, clock, admission } = endings.parts;
  const { slot } = sandbox;
  journal.transaction(() => {
    if (slot !== undefined) slots.free(slot);
    if (sandbox.state === 'stopping') {
      registry.change(sandbox, 'stopped', { endedAtMs: clock.wallMs() });
    }
  });
  sandbox.slot = undefined;
  admission.remove(sandbox.id);
  keepListed(endings, sandbox);
}

function keepListed(endings: Endings, sandbox: LiveSandbox): void {
  const { listed, parts } = endings;
  const { wheel, times } = parts;
  listed.add(sandbox);
  wheel.at(wheel.nowMs() + times.endedKeptMs, () => forget(endings, sandbox));
  const [oldest] = listed;
  if (listed.size > ENDED_MAX && oldest !== undefined) forget(endings, oldest);
}

function forget(endings: Endings, sandbox: LiveSandbox): void {
  const { listed, parts } = endings;
  if (!listed.has(sandbox)) return;
  try {
    parts.registry.forget(sandbox);
    listed.delete(sandbox);
    crashPoint('forget.after-row');
  } catch (thrown) {
    parts.report('forget', asDsecError(thrown), sandbox.id);
    parts.wheel.at(parts.wheel.nowMs() + RETRY_MS_MAX, () => forget(endings, sandbox));
  }
}
