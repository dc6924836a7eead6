import { afterEach, expect, it, vi } from 'vitest';
import { CRASH_POINTS } from '../src/crash-point.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

it('has a name for each place once', () => {
  expect(new Set(CRASH_POINTS).size).toBe(CRASH_POINTS.length);
  expect(CRASH_POINTS.every((name) => /^[a-z]+\.(before|after)-[a-z]+$/.test(name))).toBe(true);
});

it.each([
  ['stop.after-intent', 1],
  ['stop.after-intent:3', 3],
  ['create.after-hello', undefined],
  ['', undefined],
])('DSEC_CRASH_POINT=%s ends the process at visit %s', async (armed, visit) => {
  vi.stubEnv('DSEC_CRASH_POINT', armed);
  vi.resetModules();
  const { crashPoint } = await import('../src/crash-point.ts');
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
  const visits: number[] = [];
  for (let n = 1; n <= 5; n += 1) {
    crashPoint('stop.after-intent');
    if (kill.mock.calls.length > visits.length) visits.push(n);
  }
  expect(visits).toEqual(visit === undefined ? [] : [visit]);
  if (visit !== undefined) expect(kill).toHaveBeenCalledWith(process.pid, 'SIGKILL');
});
