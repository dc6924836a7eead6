import { createManualClock, type ProjectId } from '@dsec/std';
import { expect, test } from 'vitest';
import { createRateLimits } from '../src/http/rate-limits.ts';

const project = (name: string) => name as ProjectId;
const LIMIT = { perSecond: 10, burst: 5 };

function takeMany(limits: ReturnType<typeof createRateLimits>, keyId: string, of = 'p'): number {
  for (let count = 0; ; count += 1) {
    try {
      limits.take({ keyId, project: project(of) });
    } catch {
      return count;
    }
  }
}

test('a key has a burst, then its rate; the refusal says how long to wait', () => {
  const clock = createManualClock(0);
  const limits = createRateLimits(clock, LIMIT);
  expect(takeMany(limits, 'a')).toBe(5);
  const ask = () => limits.take({ keyId: 'a', project: project('p') });
  expect(ask).toThrow(
    expect.objectContaining({
      code: 'rate-limited',
      details: { limit: 'requests', perSecond: 10, retryAfterMs: 100 },
    }),
  );
  clock.advance(99);
  expect(ask).toThrow();
  clock.advance(1);
  ask();
  expect(ask).toThrow();
  clock.advance(300);
  expect(takeMany(limits, 'a')).toBe(3);
});

test('keys do not take from each other, up to the limit of their project', () => {
  const limits = createRateLimits(createManualClock(0), LIMIT);
  expect(['a', 'b', 'c', 'd', 'e'].map((key) => takeMany(limits, key))).toEqual([5, 5, 5, 5, 0]);
  expect(takeMany(limits, 'other', 'q')).toBe(5);
});

test('remembers no more keys than it may, and none without debts', () => {
  const clock = createManualClock(0);
  const limits = createRateLimits(clock, { perSecond: 1000, burst: 10_000_000 });
  for (let index = 0; index < 70_000; index += 1) {
    limits.take({ keyId: `k${index}`, project: project('p') });
  }
  clock.advance(2000);
  expect(() => limits.take({ keyId: 'new', project: project('p') })).not.toThrow();
});
