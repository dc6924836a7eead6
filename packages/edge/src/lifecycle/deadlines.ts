/**
 * What ends a sandbox by itself. One timer for each sandbox, at the earliest of its deadlines; a use of the
 * sandbox costs nothing here, since an idle timer that fires too early is set again. Everything counts in
 * time since boot (I9).
 */
import { isEndState } from '@dsec/std';
import type { TimerWheel, WheelTimer } from '../timer-wheel.ts';
import type { LiveSandbox } from './live-sandbox.ts';

type Timed = Pick<LiveSandbox, 'moving' | 'lastUsedBootMs'>;

/** When its time is up, by lifetime or idle time; or, in its grace time, when that is over. */
export function expiryOf({ moving, lastUsedBootMs }: Timed): number | undefined {
  const { ttl, lifetimeEndsBootMs, graceEndsBootMs } = moving;
  if (graceEndsBootMs !== undefined) return graceEndsBootMs;
  const idleEnds = ttl.idleMs === undefined ? Infinity : lastUsedBootMs + ttl.idleMs;
  const ends = Math.min(idleEnds, lifetimeEndsBootMs ?? Infinity);
  return ends === Infinity ? undefined : ends;
}

/** What is due now: nothing, the beginning of the grace time, or the end. */
export function dueOf(sandbox: Timed, nowBootMs: number): 'nothing' | 'grace' | 'end' {
  const expiry = expiryOf(sandbox);
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
    const expiry = isEnding(sandbox) ? undefined : expiryOf(sandbox);
    if (expiry === undefined) timers.get(sandbox)?.cancel();
    else set(sandbox, expiry);
  };
  const fire = (sandbox: LiveSandbox) => {
    if (isEnding(sandbox)) return;
    try {
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
