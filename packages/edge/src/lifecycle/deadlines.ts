/**
 * What ends a sandbox by itself. One timer for each sandbox, at the earliest of its deadlines, or when it is
 * time to note that it is still in use; a use of the sandbox costs nothing here, since an idle timer that
 * fires too early is set again. Everything counts in
 * time since boot (I9).
 */
import { isEndState } from '@dsec/std';
import type { TimerWheel, WheelTimer } from '../timer-wheel.ts';
import type { LiveSandbox } from './live-sandbox.ts';

type Timed = Pick<LiveSandbox, 'state' | 'moving' | 'lastUsedBootMs' | 'holds'>;

/**
 * How much earlier than it was a use may seem after a restart, as a part of the idle time; so often a
 * sandbox that is held is noted as used.
 */
export const USE_PRECISION = 1 / 8;

/**
 * When its time is up, by lifetime or idle time; or, in its grace time, when that is over. For one that is in
 * use: when it would be if the use ended now.
 */
export function expiryOf(sandbox: Timed, nowBootMs: number): number | undefined {
  const { ttl, lifetimeEndsBootMs, graceEndsBootMs } = sandbox.moving;
  if (graceEndsBootMs !== undefined) return graceEndsBootMs;
  const lastUsedBootMs = isInUse(sandbox) ? nowBootMs : sandbox.lastUsedBootMs;
  const idleEnds = ttl.idleMs === undefined ? Infinity : lastUsedBootMs + ttl.idleMs;
  const ends = Math.min(idleEnds, lifetimeEndsBootMs ?? Infinity);
  return ends === Infinity ? undefined : ends;
}

/** Nothing happens in one that is paused, whoever holds it. */
function isInUse({ state, holds }: Timed): boolean {
  return holds > 0 && state !== 'paused';
}

/** What is due now: nothing, the beginning of the grace time, or the end. */
export function dueOf(sandbox: Timed, nowBootMs: number): 'nothing' | 'grace' | 'end' {
  const expiry = expiryOf(sandbox, nowBootMs);
  if (expiry === undefined || expiry > nowBootMs) return 'nothing';
  const { ttl, graceEndsBootMs } = sandbox.moving;
  return graceEndsBootMs === undefined && (ttl.graceMs ?? 0) > 0 ? 'grace' : 'end';
}

export interface Deadlines {
  /** Looks at the deadlines of a sandbox again. */
  arm(sandbox: LiveSandbox): void;
}

/** Time until another attempt when what is due could not be done. */
const RETRY_MS = 1000;

export interface DeadlineActions {
  /** It is in use, and has been. */
  noteUse(sandbox: LiveSandbox): void;
  /** May throw; then it is tried again. */
  beginGrace(sandbox: LiveSandbox): void;
  end(sandbox: LiveSandbox): void;
}

export function createDeadlines(wheel: TimerWheel, actions: DeadlineActions): Deadlines {
  const timers = new WeakMap<LiveSandbox, WheelTimer>();

  const set = (sandbox: LiveSandbox, atMs: number) => {
    timers.get(sandbox)?.cancel();
    timers.set(
      sandbox,
      wheel.at(atMs, () => fire(sandbox)),
    );
  };
  const arm = (sandbox: LiveSandbox) => {
    const nowMs = wheel.nowMs();
    const expiry = isEnding(sandbox) ? undefined : expiryOf(sandbox, nowMs);
    if (expiry === undefined) return timers.get(sandbox)?.cancel();
    const { idleMs = Infinity } = sandbox.moving.ttl;
    set(sandbox, Math.min(expiry, nowMs + idleMs * USE_PRECISION));
  };
  const fire = (sandbox: LiveSandbox) => {
    if (isEnding(sandbox)) return;
    try {
      if (isInUse(sandbox)) actions.noteUse(sandbox);
      const due = dueOf(sandbox, wheel.nowMs());
      if (due === 'grace') actions.beginGrace(sandbox);
      if (due === 'end') actions.end(sandbox);
      arm(sandbox);
    } catch {
      set(sandbox, wheel.nowMs() + RETRY_MS);
    }
  };
  return { arm };
}

function isEnding({ state }: LiveSandbox): boolean {
  return state === 'stopping' || isEndState(state);
}
