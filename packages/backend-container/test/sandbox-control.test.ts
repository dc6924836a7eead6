import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createManualClock, DsecError, MIB } from '@dsec/std';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { LauncherClient } from '../src/launcher-client.ts';
import { freezeSandbox, pauseSandbox, thawSandbox, updateSandbox } from '../src/sandbox-control.ts';
import { type BackendContext, newLife } from '../src/sandbox-life.ts';
import { objectId } from '../src/spawn-spec.ts';
import { nodeWith, planWith } from './support/plans.ts';

const plan = planWith();
const { key } = plan;

/** A sandbox whose cgroups are plain files, and a launcher that notes what it should write. */
function fake({ frozen = true, usage = 50 * MIB } = {}) {
  const root = mkdtempSync(join(tmpdir(), 'dsec-control-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const put = (path: string, content: string) => {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  put(`unified/${objectId(key)}/cgroup.events`, `populated 1\nfrozen ${frozen ? 1 : 0}\n`);
  put(`memory/pool-${plan.slot}/memory.usage_in_bytes`, `${usage}\n`);
  const writes: string[] = [];
  let failing: DsecError | undefined;
  const client = {
    async writeCgroup({ hierarchy, settings }) {
      writes.push(...settings.map(({ name, value }) => `${hierarchy} ${name}=${value}`));
      if (failing !== undefined && hierarchy === 'memory') throw failing;
    },
  } as LauncherClient;
  const record = { pid: 1, startTicks: 1, upperDriver: 'tmpfs', oomKillsBefore: 0 } as const;
  const life = newLife(plan, 'running', record);
  const clock = createManualClock();
  const place = (name: string) => ({ version: 1, directory: join(root, name) }) as const;
  const context = {
    node: nodeWith({
      cgroups: {
        unified: join(root, 'unified'),
        controllers: { cpu: place('cpu'), memory: place('memory') },
        swapAccounting: false,
      },
    }),
    link: { client: async () => client },
    lives: new Map([[objectId(key), life]]),
    clock,
  } as unknown as BackendContext;
  return {
    ...{ context, writes, life, clock },
    fail: (error: DsecError) => {
      failing = error;
    },
  };
}

describe('freeze', () => {
  it('waits until the kernel says so', async () => {
    const { context, writes } = fake();
    await freezeSandbox(context, key);
    await thawSandbox(context, key);
    expect(writes).toEqual(['unified cgroup.freeze=1', 'unified cgroup.freeze=0']);
  });

  it('gives up after its time, and thaws again', async () => {
    const { context, writes, clock } = fake({ frozen: false });
    let settled = false;
    const freezing = freezeSandbox(context, key).finally(() => {
      settled = true;
    });
    freezing.catch(() => {});
    while (!settled) {
      clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await expect(freezing).rejects.toMatchObject({ code: 'freeze-timeout' });
    expect(writes.at(-1)).toBe('unified cgroup.freeze=0');
  });

  it('thaws again when the caller gives up', async () => {
    const { context, writes } = fake({ frozen: false });
    const giveUp = new AbortController();
    const freezing = freezeSandbox(context, key, giveUp.signal);
    await new Promise((resolve) => setImmediate(resolve));
    giveUp.abort();
    await expect(freezing).rejects.toMatchObject({ code: 'cancelled' });
    expect(writes.at(-1)).toBe('unified cgroup.freeze=0');
  });
});

describe('pause', () => {
  it('takes memory back, as much as there is', async () => {
    const { context, writes, fail } = fake();
    fail(new DsecError('conflict', 'busy', { details: { errno: 16 } }));
    await pauseSandbox(context, key);
    expect(writes).toEqual(['unified cgroup.freeze=1', 'memory memory.force_empty=0']);
  });
});

describe('update', () => {
  it('writes what has changed, where it is kept, and remembers it', async () => {
    const { context, writes, life } = fake();
    await updateSandbox(context, key, { cpuMillicores: 500, memoryBytes: plan.limits.memoryBytes });
    expect(writes.map((line) => line.split('=')[0])).toEqual([
      'cpu cpu.cfs_period_us',
      'cpu cpu.cfs_quota_us',
      'cpu cpu.shares',
    ]);
    expect(life.plan.limits.cpuMillicores).toBe(500);
  });

  it.each([
    ['what no controller keeps', { pidsMax: 9 }, 'unsupported'],
    ['what cannot change', { diskBytes: MIB }, 'unsupported'],
    ['less memory than is in use', { memoryBytes: 40 * MIB }, 'conflict'],
    ['less memory than the disk in it needs', { memoryBytes: 52 * MIB }, 'invalid-argument'],
  ])('refuses %s', async (_, limits, code) => {
    const { context, writes } = fake();
    await expect(updateSandbox(context, key, limits)).rejects.toMatchObject({ code });
    expect(writes).toEqual([]);
  });

  it('knows no sandbox that has ended', async () => {
    const { context, life } = fake();
    life.state = 'ended';
    await expect(thawSandbox(context, key)).rejects.toMatchObject({ code: 'state-conflict' });
    context.lives.clear();
    await expect(thawSandbox(context, key)).rejects.toMatchObject({ code: 'not-found' });
  });
});
