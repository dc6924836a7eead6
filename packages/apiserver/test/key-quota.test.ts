import { createManualClock, HOUR_MS } from '@dsec/std';
import { expect, test } from 'vitest';
import { createKeyQuota } from '../src/create/key-quota.ts';

test('a project uses so many keys in an hour, whatever others do', () => {
  const clock = createManualClock();
  const quota = createKeyQuota(clock, 3);
  for (let used = 0; used < 3; used += 1) quota.take('p');
  expect(() => quota.take('p')).toThrowError(expect.objectContaining({ code: 'quota-exceeded' }));
  quota.take('q');
  clock.advance(HOUR_MS);
  quota.take('p');
});
