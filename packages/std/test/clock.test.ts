import { readFileSync } from 'node:fs';
import { createManualClock, DAY_MS, readBootId, systemClock } from '@dsec/std';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';

afterEach(() => vi.useRealTimers());

describe('systemClock', () => {
  it('never goes back and follows the wall', () => {
    let last = systemClock.monotonicMs();
    for (let i = 0; i < 1000; i++) {
      const now = systemClock.monotonicMs();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
    expect(systemClock.wallMs()).toBeGreaterThan(Date.UTC(2024, 0, 1));
  });

  it('sleeps as long as it is told, also longer than a timer of Node can', async () => {
    vi.useFakeTimers();
    for (const ms of [0, 5, 30 * DAY_MS, 100 * DAY_MS]) {
      let awake = false;
      const sleep = systemClock.sleep(ms).then(() => {
        awake = true;
      });
      if (ms > 0) {
        await vi.advanceTimersByTimeAsync(ms - 1);
        expect(awake).toBe(false);
      }
      await vi.advanceTimersByTimeAsync(1);
      await sleep;
      expect(awake).toBe(true);
    }
  });

  it('rejects with the reason of the signal, before and while it sleeps, and leaves no timer', async () => {
    const reason = new Error('enough');
    await expect(systemClock.sleep(1000, AbortSignal.abort(reason))).rejects.toBe(reason);
    vi.useFakeTimers();
    const controller = new AbortController();
    const sleep = systemClock.sleep(60 * DAY_MS, controller.signal);
    controller.abort(reason);
    await expect(sleep).rejects.toBe(reason);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('createManualClock', () => {
  it('wakes the sleepers whose time has come, in the order of their times', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(100)), fc.nat(100), async (times, ahead) => {
        const clock = createManualClock();
        const woken: number[] = [];
        for (const ms of times) void clock.sleep(ms).then(() => woken.push(ms));
        clock.advance(ahead);
        await new Promise((resolve) => setImmediate(resolve));
        expect(woken).toEqual(times.filter((ms) => ms <= ahead).sort((a, b) => a - b));
      }),
      { seed: 1 },
    );
  });

  it('moves both clocks, or the wall alone', () => {
    const clock = createManualClock(1000);
    clock.advance(5);
    clock.stepWall(-500);
    expect(clock.wallMs()).toBe(505);
    expect(clock.monotonicMs()).toBe(5);
  });

  it('wakes a sleeper by its signal, and then not again', async () => {
    const clock = createManualClock();
    const controller = new AbortController();
    const sleep = clock.sleep(10, controller.signal);
    controller.abort(new Error('enough'));
    await expect(sleep).rejects.toThrow('enough');
    clock.advance(10);
    await expect(clock.sleep(1, controller.signal)).rejects.toThrow('enough');
  });

  it('takes its listener off a signal that outlives the sleep', async () => {
    const clock = createManualClock();
    const { signal } = new AbortController();
    const remove = vi.spyOn(signal, 'removeEventListener');
    const sleep = clock.sleep(10, signal);
    clock.advance(10);
    await sleep;
    expect(remove).toHaveBeenCalledTimes(1);
  });
});

describe('bootMs', () => {
  it('is the uptime of the machine', () => {
    const uptimeMs = () => Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000;
    const before = uptimeMs();
    const found = systemClock.bootMs();
    expect(found).toBeGreaterThanOrEqual(Math.round(before));
    expect(found).toBeLessThanOrEqual(Math.round(uptimeMs()));
  });

  it('counts the time of a suspended machine, which the monotonic clock does not', () => {
    const clock = createManualClock(1000);
    clock.advance(5);
    clock.suspend(7);
    expect([clock.bootMs(), clock.monotonicMs(), clock.wallMs()]).toEqual([12, 5, 1012]);
  });
});

describe('readBootId', () => {
  it('is a UUID and stays the same', () => {
    expect(readBootId()).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(readBootId()).toBe(readBootId());
  });
});
