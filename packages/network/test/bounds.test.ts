import {
  createDenialReporter,
  createNameGuard,
  createRecentMap,
  createTokenBucket,
  NAME_GUARD_LIMITS,
  type NetworkDenial,
} from '@dsec/network';
import { createManualClock } from '@dsec/std';
import { expect, test } from 'vitest';

test('a bucket gives its burst at once, then so many a second, and never more than its burst', () => {
  const bucket = createTokenBucket({ perSecond: 10, burst: 3 });
  const takes = (nowMs: number) =>
    Array.from({ length: 5 }, () => bucket.take(nowMs)).filter(Boolean).length;
  expect([takes(1000), takes(1000), takes(1100), takes(1350), takes(99_000)]).toEqual([
    3, 0, 1, 2, 3,
  ]);
});

test('a map of recent entries forgets the one that was used longest ago', () => {
  const map = createRecentMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.get('a');
  map.set('c', 3);
  expect([map.get('a'), map.get('b'), map.get('c'), map.size]).toEqual([1, undefined, 3, 2]);
});

test('denials of many sandboxes are remembered for so many of them', () => {
  const seen: NetworkDenial[] = [];
  const clock = createManualClock();
  const reporter = createDenialReporter({
    ...{ clock, sandboxesMax: 2, perSandbox: { perSecond: 1, burst: 1 } },
    onDenied: (denial) => seen.push(denial),
  });
  const report = (sandbox: string) => reporter.report({ sandbox, at: 'dns', reason: 'name' });
  for (const sandbox of ['a', 'a', 'b', 'c', 'a']) report(sandbox);
  expect(seen.map(({ sandbox }) => sandbox)).toEqual(['a', 'b', 'c', 'a']);
  report('c');
  clock.advance(1000);
  report('c');
  expect(seen.at(-1)).toMatchObject({ sandbox: 'c', suppressed: 1 });
});

test('the guard bounds names below wildcards alone, for each sandbox by itself', () => {
  const guard = createNameGuard({ ...NAME_GUARD_LIMITS, distinctMax: 2 }, createManualClock());
  const rule = (pattern: string) => ({ pattern, ports: [], isDedicated: false });
  const wild = rule('*.example.com');
  const admits = (sandbox: string, name: string) =>
    guard.admits(sandbox, `${name}.example.com`, wild);
  expect(['a', 'b', 'c', 'a'].map((name) => admits('sb-1', name))).toEqual([
    true,
    true,
    false,
    true,
  ]);
  expect(admits('sb-2', 'c')).toBe(true);
  const long = `${'x'.repeat(60)}.${'y'.repeat(60)}.example.com`;
  expect(guard.admits('sb-1', long, rule(long))).toBe(true);
  expect(guard.admits('sb-3', long, wild)).toBe(false);
});
