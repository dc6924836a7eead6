import { createSeededRandom, DsecError, type EdgeId, systemClock } from '@dsec/std';
import type { EdgeView } from '@dsec/watcher';
import { expect, test, vi } from 'vitest';
import { createPlacer } from '../src/create/placer.ts';

const edge = 'a' as EdgeId;
const signal = new AbortController().signal;
const load = {
  ...{ admitting: true, cpuCount: 1, memoryTotalBytes: 100, memoryAvailableBytes: 50 },
  ...{ diskAvailableBytes: 1, pidsAvailable: 1 },
};
const view = (more: object = {}) =>
  ({
    edge,
    live: 0,
    error: undefined,
    state: { backends: ['container'], load },
    ...more,
  }) as EdgeView;
const down = view({ error: new DsecError('unavailable', 'gone') });
const full = view({ state: { backends: ['container'], load: { ...load, admitting: false } } });

function placerOf(views: readonly EdgeView[]) {
  let round = 0;
  const refresh = vi.fn(async () => {
    round += 1;
  });
  const edges = () => [views[Math.min(round, views.length - 1)] as EdgeView];
  const watcher = () => ({ edges, refresh });
  return {
    refresh,
    ...createPlacer({ watcher, clock: systemClock, random: createSeededRandom(1) }),
  };
}

test('takes the view as it is while that has an edge', async () => {
  const { choose, refresh } = placerOf([view()]);
  expect(await choose({}, 3, signal)).toEqual([edge, edge, edge]);
  expect(refresh).not.toHaveBeenCalled();
});

test('a view that says no is made anew once before it is believed', async () => {
  const { choose, refresh } = placerOf([full, view()]);
  expect(await choose({}, 1, signal)).toEqual([edge]);
  const still = placerOf([full]);
  await expect(still.choose({}, 1, signal)).rejects.toMatchObject({ code: 'overloaded' });
  expect(refresh).toHaveBeenCalledTimes(1);
  expect(still.refresh).toHaveBeenCalledTimes(1);
});

test('edges that do not answer yet are waited for, unless another edge was asked already', async () => {
  const { choose, refresh } = placerOf([down, down, down, view()]);
  expect(await choose({}, 1, signal)).toEqual([edge]);
  expect(refresh).toHaveBeenCalledTimes(3);
  const moving = placerOf([down, down, view()]);
  const excluded = new Set(['b' as EdgeId]);
  await expect(moving.choose({ excluded }, 1, signal)).rejects.toMatchObject({
    code: 'unavailable',
  });
});

test('what no edge can do is said at once', async () => {
  const { choose, refresh } = placerOf([view()]);
  await expect(choose({ backend: 'microvm' }, 1, signal)).rejects.toMatchObject({
    code: 'unsupported',
  });
  expect(refresh).not.toHaveBeenCalled();
});
