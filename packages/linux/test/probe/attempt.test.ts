import { DsecError } from '@dsec/std';
import { afterEach, expect, it, vi } from 'vitest';
import { asOutcome, attempt } from '../../src/probe/attempt.ts';

afterEach(() => vi.restoreAllMocks());
const asUser = (uid: number) => vi.spyOn(process, 'geteuid').mockReturnValue(uid);
const denied = new DsecError('permission-denied', 'no');

it('keeps what a trial returns and why it failed', () => {
  expect(attempt(() => 'seen')).toEqual({ state: 'works', detail: 'seen' });
  const broken = () => {
    throw new Error('broken');
  };
  expect(attempt(broken)).toEqual({ state: 'fails', why: 'broken' });
});

it('takes a refusal for an answer only from root', () => {
  asUser(0);
  expect(asOutcome(denied)).toEqual({ state: 'fails', why: 'no' });
  asUser(1000);
  expect(asOutcome(denied)).toEqual({ state: 'untried', why: 'needs root (no)' });
  expect(asOutcome(new DsecError('unsupported', 'gone'))).toEqual({ state: 'fails', why: 'gone' });
});
