import { MIB } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { bootIdOf, processorMask, processorsOf, procViews } from '../src/proc-views.ts';
import { nodeWith, planWith } from './support/plans.ts';

const { hostProc } = nodeWith();

function contents(cpuMillicores: number, memoryBytes: number) {
  const views = procViews({ cpuMillicores, memoryBytes }, 4, hostProc);
  return new Map(views.map(({ target, content }) => [target, content()]));
}

describe('procViews', () => {
  it('tells of the memory limit as of all the memory there is', () => {
    const meminfo = contents(1000, 96 * MIB).get('meminfo') ?? '';
    expect(meminfo).toMatch(/^MemTotal: +98304 kB$/m);
    expect(meminfo).toMatch(/^MemAvailable: +98304 kB$/m);
    expect(meminfo).toMatch(/^SwapTotal: +0 kB$/m);
  });

  it('tells of as many processors as the limit amounts to', () => {
    const views = contents(2500, MIB);
    expect(views.get('cpuinfo')?.match(/^processor/gm)).toHaveLength(3);
    expect(views.get('stat')?.match(/^cpu\d/gm)).toHaveLength(3);
    expect(views.get('stat')).toMatch(/^btime 1700000000$/m);
  });

  it('has one name for one content', () => {
    const limits = [planWith().limits, { ...planWith().limits, memoryBytes: 64 * MIB }];
    const all = limits.flatMap((each) => procViews(each, 4, hostProc));
    const byName = new Map(all.map(({ name, content }) => [name, content()]));
    expect(all.every(({ name, content }) => byName.get(name) === content())).toBe(true);
    expect(byName.size).toBe(5);
  });
});

describe('processors', () => {
  it.each([
    [10, 4, 1],
    [1000, 4, 1],
    [1001, 4, 2],
    [9000, 4, 4],
  ])('%i millicores of %i are %i', (millicores, available, count) => {
    expect(processorsOf(millicores, available)).toBe(count);
  });

  it('are spread by slot, among those that there are', () => {
    const bits = (slot: number, count: number, online: readonly number[]) =>
      [...processorMask(slot, count, online)].flatMap((byte, i) =>
        [0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => byte & (1 << bit)).map((bit) => 8 * i + bit),
      );
    expect([0, 1, 2].map((slot) => bits(slot, 1, [0, 1]))).toEqual([[0], [1], [0]]);
    expect([0, 1].map((slot) => bits(slot, 3, [2, 5, 9, 12]))).toEqual([
      [2, 5, 9],
      [2, 5, 12],
    ]);
  });
});

describe('bootIdOf', () => {
  it('has the kernel form, and is of one life alone', () => {
    const ids = [bootIdOf('e', 'x-1'), bootIdOf('e', 'x-2'), bootIdOf('f', 'x-1')];
    const form = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$/;
    expect(ids.every((id) => form.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(3);
    expect(bootIdOf('e', 'x-1')).toBe(ids[0]);
  });
});
