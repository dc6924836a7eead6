import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/**
 * Time as the code sees it. `wallMs` is for showing and for records; every deadline within a process uses
 * `monotonicMs`, which no clock step moves, and every deadline that outlives a process `bootMs` with the
 * boot id. Tests and the simulator pass a manual clock.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch. May jump. */
  wallMs(): number;
  /** Milliseconds since an arbitrary start; never goes back. */
  monotonicMs(): number;
  /**
   * Milliseconds since the machine was started, with the time that it was suspended (CLOCK_BOOTTIME, in
   * steps of 10 ms): the same for every process of one boot. Costs the reading of a file.
   */
  bootMs(): number;
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A timer of Node that is set for longer fires at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => Number(process.hrtime.bigint() / 1000n) / 1000,
  bootMs: () => Math.round(uptime() * 1000),
  async sleep(ms, signal) {
    for (let left = ms; ; left -= TIMER_MS_MAX) {
      await sleepOnce(Math.min(left, TIMER_MS_MAX), signal);
      if (left <= TIMER_MS_MAX) return;
    }
  },
};

function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

export interface ManualClock extends Clock {
  /** Moves time forward and wakes every sleeper whose time has come, in order. */
  advance(ms: number): void;
  /** Moves only the wall clock, as an administrator or NTP would. */
  stepWall(ms: number): void;
  /** Passes time as a suspended machine does: the monotonic clock stands still. */
  suspend(ms: number): void;
}

export function createManualClock(startWallMs = 0): ManualClock {
  let wall = startWallMs;
  let mono = 0;
  let suspended = 0;
  let sleepers: { at: number; wake: () => void }[] = [];
  return {
    wallMs: () => wall,
    monotonicMs: () => mono,
    bootMs: () => mono + suspended,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const onAbort = () => {
          sleepers = sleepers.filter((s) => s !== entry);
          reject(signal?.reason);
        };
        const wake = () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        };
        const entry = { at: mono + ms, wake };
        sleepers.push(entry);
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
    advance(ms) {
      wall += ms;
      mono += ms;
      const due = sleepers.filter((s) => s.at <= mono).sort((a, b) => a.at - b.at);
      sleepers = sleepers.filter((s) => s.at > mono);
      for (const s of due) s.wake();
    },
    stepWall(ms) {
      wall += ms;
    },
    suspend(ms) {
      wall += ms;
      suspended += ms;
    },
  };
}

/** The kernel's id of this boot. A deadline in monotonic time means nothing under another boot id. */
export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}
