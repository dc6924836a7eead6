import { createSeededRandom, DsecError } from '@dsec/std';
import { expect, it } from 'vitest';
import { withRetries } from '../src/http-retry.ts';
import { startDeadline } from '../src/index.ts';

const POLICY = { attemptsMax: 5, firstDelayMs: 1, delayMsMax: 4 };

async function attempts(policy: typeof POLICY, deadlineMs: number, failure: DsecError) {
  const deadline = startDeadline(deadlineMs);
  let count = 0;
  const attempt = async () => {
    count += 1;
    throw failure;
  };
  await expect(withRetries(policy, deadline, attempt, createSeededRandom(1))).rejects.toBe(failure);
  deadline.stop();
  return count;
}

it('attempts transient errors again, as often as it may', async () => {
  expect(await attempts(POLICY, 10_000, new DsecError('overloaded', ''))).toBe(5);
  expect(await attempts(POLICY, 10_000, new DsecError('not-found', ''))).toBe(1);
  expect(
    await attempts({ ...POLICY, attemptsMax: 1 }, 10_000, new DsecError('unavailable', '')),
  ).toBe(1);
});

it('does not begin a pause that would outlast the deadline', async () => {
  const patient = new DsecError('unavailable', '', { details: { retryAfterMs: 20_000 } });
  expect(await attempts(POLICY, 10_000, patient)).toBe(1);
});

it('ends a pause with the deadline of the caller', async () => {
  const caller = new AbortController();
  const deadline = startDeadline(60_000, caller.signal);
  const slow = new DsecError('unavailable', '', { details: { retryAfterMs: 30_000 } });
  const outcome = withRetries(POLICY, deadline, async () => {
    setImmediate(() => caller.abort());
    throw slow;
  });
  await expect(outcome).rejects.toMatchObject({ code: 'cancelled' });
});
