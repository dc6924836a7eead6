/**
 * All deadlines of an edge on one timer. Times are milliseconds since boot, so that a step of the wall
 * clock moves nothing and the time of a suspended machine counts. Buckets are made where there are timers
 * only: a wheel with a few far deadlines is as cheap as an empty one.
 */
import type { Clock } from '@dsec/std';

export interface TimerWheel {
  /** Time since boot as of the last tick, at most `TICK_MS` old while timers wait. Costs nothing. */
  nowMs(): number;
  /** Calls `fn`, which must not throw, at the first tick at or after `bootMs`; never early. */
  at(bootMs: number, fn: () => void): WheelTimer;
  /** Forgets every timer. */
  close(): void;
}

export interface WheelTimer {
  cancel(): void;
}

export const TICK_MS = 100;

export function createTimerWheel(clock: Clock): TimerWheel {
  const buckets = new Map<number, Set<() => void>>();
  const closing = new AbortController();
  let tick = Math.floor(clock.bootMs() / TICK_MS);
  let nowMs = clock.bootMs();
  let turning = false;

  const fire = (bucket: number) => {
    const due = buckets.get(bucket);
    buckets.delete(bucket);
    for (const fn of due ?? []) fn();
  };
  const turnTo = (target: number) => {
    // After a suspension there may be more ticks than buckets.
    if (target - tick > buckets.size) {
      const due = [...buckets.keys()].filter((bucket) => bucket <= target).sort((a, b) => a - b);
      tick = target;
      for (const bucket of due) fire(bucket);
    }
    // What is set meanwhile comes behind the tick that is being fired.
    while (tick < target) {
      tick += 1;
      fire(tick);
    }
  };
  const turn = async () => {
    turning = true;
    try {
      while (buckets.size > 0) {
        await clock.sleep(TICK_MS, closing.signal);
        nowMs = clock.bootMs();
        turnTo(Math.floor(nowMs / TICK_MS));
      }
    } catch {
      // Closed.
    } finally {
      turning = false;
    }
  };

  return {
    nowMs() {
      if (!turning) nowMs = clock.bootMs();
      return nowMs;
    },
    at(bootMs, fn) {
      if (!turning) tick = Math.max(tick, Math.floor(clock.bootMs() / TICK_MS));
      const bucket = Math.max(tick + 1, Math.ceil(bootMs / TICK_MS));
      const timers = buckets.get(bucket) ?? new Set();
      buckets.set(bucket, timers);
      // The same function may be set twice.
      const call = () => fn();
      timers.add(call);
      if (!turning && !closing.signal.aborted) void turn();
      return {
        cancel() {
          timers.delete(call);
          if (timers.size === 0 && buckets.get(bucket) === timers) buckets.delete(bucket);
        },
      };
    },
    close() {
      closing.abort();
      buckets.clear();
    },
  };
}
