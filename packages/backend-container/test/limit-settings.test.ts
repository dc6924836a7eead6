import { MIB } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { cgroupSettings, cgroupsOf, settingsOf } from '../src/limit-settings.ts';
import { bare, hybrid, planWith, pure } from './support/plans.ts';

const lines = (settings: ReturnType<typeof settingsOf>) =>
  settings.map(({ name, value }) => `${name}=${value}`);

describe('settingsOf', () => {
  it.each([
    [10, 1000, 1, 10],
    [500, 50_000, 50, 512],
    [1000, 100_000, 100, 1024],
    [64_000, 6_400_000, 6400, 65_536],
    [1_024_000, 102_400_000, 10_000, 262_144],
  ])('cpu of %i millicores', (cpuMillicores, quota, weight, shares) => {
    expect(lines(settingsOf('cpu', 2, { cpuMillicores }, true))).toEqual([
      `cpu.max=${quota} 100000`,
      `cpu.weight=${weight}`,
    ]);
    expect(lines(settingsOf('cpu', 1, { cpuMillicores }, true))).toEqual([
      'cpu.cfs_period_us=100000',
      `cpu.cfs_quota_us=${quota}`,
      `cpu.shares=${shares}`,
    ]);
  });

  it('memory without swap, lifting the limit on both first where there are two', () => {
    const limits = { memoryBytes: 64 * MIB };
    expect(lines(settingsOf('memory', 2, limits, true))).toEqual([
      `memory.max=${64 * MIB}`,
      'memory.swap.max=0',
    ]);
    expect(lines(settingsOf('memory', 2, limits, false))).toEqual([`memory.max=${64 * MIB}`]);
    expect(lines(settingsOf('memory', 1, limits, true))).toEqual([
      'memory.memsw.limit_in_bytes=-1',
      `memory.limit_in_bytes=${64 * MIB}`,
      `memory.memsw.limit_in_bytes=${64 * MIB}`,
      'memory.swappiness=0',
    ]);
    expect(lines(settingsOf('memory', 1, limits, false))).toEqual([
      `memory.limit_in_bytes=${64 * MIB}`,
      'memory.swappiness=0',
    ]);
  });

  it('says nothing for limits that are not named', () => {
    for (const controller of ['cpu', 'memory', 'pids'] as const) {
      expect(settingsOf(controller, 2, {}, true)).toEqual([]);
    }
    expect(lines(settingsOf('pids', 1, { pidsMax: 9, memoryBytes: MIB }, true))).toEqual([
      'pids.max=9',
    ]);
  });
});

describe('cgroupsOf', () => {
  const { limits } = planWith();

  it('has everything in the life directory where version 2 has the controllers', () => {
    const [life, ...rest] = cgroupsOf(cgroupSettings(pure, limits), 'x-1', 4);
    expect(rest).toEqual([]);
    expect(life?.settings.map(({ name }) => name)).toEqual([
      ...['cpu.max', 'cpu.weight', 'memory.max', 'memory.swap.max', 'pids.max'],
    ]);
  });

  it('starts the counters of a pooled directory again', () => {
    const memory = cgroupsOf(cgroupSettings(hybrid, limits), 'x-1', 4).find(
      (c) => c.hierarchy === 'memory',
    );
    expect(memory?.settings.at(-1)).toEqual({ name: 'memory.max_usage_in_bytes', value: '0' });
  });

  it('is the life directory alone on a node without controllers', () => {
    expect(cgroupsOf(cgroupSettings(bare, limits), 'x-1', 4)).toEqual([
      { hierarchy: 'unified', directory: Buffer.from('x-1'), settings: [] },
    ]);
  });
});
