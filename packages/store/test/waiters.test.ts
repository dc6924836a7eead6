import { createManualClock, systemClock } from '@dsec/std';
import { expect, it } from 'vitest';
import { createWaiters } from '../src/waiters.ts';

const forever = (ticks: number) => ({
  ticks,
  timeoutMs: Number.POSITIVE_INFINITY,
  signal: undefined,
});

it('wakes those who wait for the topic and no others', async () => {
  const waiters = createWaiters({ clock: createManualClock(), waitersMax: 10 });
  const woken: string[] = [];
  const one = waiters.wait('a', forever(0)).then(() => woken.push('a'));
  const two = waiters.wait('b', forever(0)).then(() => woken.push('b'));
  waiters.wake('a');
  await one;
  expect(woken).toEqual(['a']);
  waiters.wakeAll();
  await two;
  expect(woken).toEqual(['a', 'b']);
});

it('does not wait at all when something changed since the look', async () => {
  const waiters = createWaiters({ clock: createManualClock(), waitersMax: 10 });
  const { ticks } = waiters;
  waiters.wake('a');
  await waiters.wait('a', forever(ticks));
});

it('ends a wait by time, by signal and by closing', async () => {
  const clock = createManualClock();
  const waiters = createWaiters({ clock, waitersMax: 10 });
  const timed = waiters.wait('a', { ticks: 0, timeoutMs: 100, signal: undefined });
  clock.advance(100);
  await timed;
  const abort = new AbortController();
  const aborted = waiters.wait('a', { ...forever(0), signal: abort.signal });
  abort.abort();
  await aborted;
  const closed = expect(waiters.wait('a', forever(0))).rejects.toMatchObject({
    code: 'unavailable',
  });
  waiters.close();
  await closed;
});

it('polls only while somebody waits, and a failing poll wakes too', async () => {
  let polls = 0;
  let answer: () => boolean = () => false;
  const changed = () => {
    polls += 1;
    return answer();
  };
  const waiters = createWaiters({
    clock: systemClock,
    waitersMax: 10,
    poll: { everyMs: 1, changed },
  });
  const quietly = { ticks: waiters.ticks, timeoutMs: 30, signal: undefined };
  await waiters.wait('a', quietly);
  expect(polls).toBeGreaterThan(0);
  answer = () => {
    throw new Error('broken');
  };
  await waiters.wait('a', forever(waiters.ticks));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const atRest = polls;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(polls).toBe(atRest);
});
