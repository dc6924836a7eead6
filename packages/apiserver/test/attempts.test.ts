import { createSeededRandom, DsecError, systemClock } from '@dsec/std';
import { expect, test } from 'vitest';
import { attempts } from '../src/fleet/attempts.ts';

const base = { clock: systemClock, random: createSeededRandom(1) };
const signal = new AbortController().signal;

/** Fails so often, then succeeds. */
function failing(times: number, error: DsecError) {
  let calls = 0;
  const work = async () => {
    calls += 1;
    if (calls <= times) throw error;
    return calls;
  };
  return { work, calls: () => calls };
}
const unavailable = (details = {}) => new DsecError('unavailable', 'gone', { details });

test('what may be repeated is, until it succeeds', async () => {
  const { work } = failing(3, unavailable());
  expect(await attempts(work, { ...base, signal, mayRepeat: true })).toBe(4);
});

test('what may have arrived is not repeated when that would do harm', async () => {
  for (const [error, calls] of [
    [unavailable(), 1],
    [unavailable({ sent: true }), 1],
    [unavailable({ sent: false }), 3],
    [unavailable({ begun: false }), 3],
  ] as const) {
    const tried = failing(2, error);
    await attempts(tried.work, { ...base, signal, mayRepeat: false }).catch(() => undefined);
    expect(tried.calls()).toBe(calls);
  }
});

test('other errors end it', async () => {
  const tried = failing(2, new DsecError('overloaded', 'full'));
  await expect(attempts(tried.work, { ...base, signal, mayRepeat: true })).rejects.toMatchObject({
    code: 'overloaded',
  });
  expect(tried.calls()).toBe(1);
});

test('patience ends, and so does the caller', async () => {
  const tried = failing(1000, unavailable());
  const options = { ...base, mayRepeat: true, patienceMs: 60 };
  await expect(attempts(tried.work, { ...options, signal })).rejects.toMatchObject({
    code: 'unavailable',
  });
  expect(tried.calls()).toBeLessThan(10);
  await expect(
    attempts(tried.work, { ...options, signal: AbortSignal.abort(), patienceMs: 60_000 }),
  ).rejects.toMatchObject({ code: 'unavailable' });
});
