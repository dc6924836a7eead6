import { DsecError } from '@dsec/std';
import { expect, it } from 'vitest';
import { startDeadline } from '../src/index.ts';

const reason = (signal: AbortSignal) =>
  new Promise<DsecError>((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    signal.addEventListener('abort', () => resolve(signal.reason));
  });

it('aborts in time with deadline-exceeded', async () => {
  const deadline = startDeadline(5);
  expect((await reason(deadline.signal)).code).toBe('deadline-exceeded');
  expect(deadline.leftMs()).toBe(0);
});

it('aborts with the caller, keeping an error that it gave', async () => {
  const caller = new AbortController();
  const deadline = startDeadline(60_000, caller.signal);
  caller.abort();
  expect((await reason(deadline.signal)).code).toBe('cancelled');
  expect(startDeadline(60_000, caller.signal).signal.aborted).toBe(true);
  const angry = AbortSignal.abort(new DsecError('quota-exceeded', 'no'));
  expect((await reason(startDeadline(60_000, angry).signal)).code).toBe('quota-exceeded');
  const timed = AbortSignal.abort(new DOMException('late', 'TimeoutError'));
  expect((await reason(startDeadline(60_000, timed).signal)).code).toBe('deadline-exceeded');
});

it('does nothing any more once it is lifted or stopped', async () => {
  const caller = new AbortController();
  const lifted = startDeadline(1, caller.signal);
  const stopped = startDeadline(1, caller.signal);
  lifted.lift();
  stopped.stop();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(lifted.signal.aborted).toBe(false);
  caller.abort();
  expect(lifted.signal.aborted).toBe(true);
  expect(stopped.signal.aborted).toBe(false);
});
