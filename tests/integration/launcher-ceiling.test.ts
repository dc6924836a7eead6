import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { compileSeccomp } from '@dsec/backend-container';
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import {
  ATTRIBUTES,
  buildNative,
  type LauncherWorld,
  mountLayers,
  openLauncherWorld,
  type RunningLauncher,
  type TestLayer,
} from './launcher-world.ts';
import { expectedCeiling, nodeCeiling } from './node-ceiling.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

const THREADS_MAX = '/proc/sys/kernel/threads-max';
const boxes = ['box-one', 'box-two', 'box-three'].map((name) => ({ name, generation: 1 }));
const WANTED = 60;
const ROOM = 100;

describe.runIf(canMount)('processes of all sandboxes together (needs root)', () => {
  let world: LauncherWorld;
  let launcher: RunningLauncher;
  let base: TestLayer;

  beforeAll(buildNative);
  beforeEach(async () => {
    world = openLauncherWorld({ seccomp: compileSeccomp() });
    launcher = await world.start();
    base = world.buildLayer((builder) => builder.file('hello', ATTRIBUTES, 0).end());
    await mountLayers(launcher.client, [base]);
  });
  afterEach(() => world.close());

  const spawn = (index: number) =>
    launcher.client.spawn(
      world.spec(boxes[index] as (typeof boxes)[0], { layers: [base], slot: index + 1 }),
    );
  const fork = async (index: number) =>
    Number(await world.ask(boxes[index] as (typeof boxes)[0], `forks ${WANTED}`));

  it('are a part of what the host can have, looked up with each edge', async () => {
    expect(nodeCeiling(world.edgeId).max).toBe(expectedCeiling());
    const before = readFileSync(THREADS_MAX, 'utf8').trim();
    onTestFinished(() => writeFileSync(THREADS_MAX, before));
    writeFileSync(THREADS_MAX, `${Math.min(Number(before), 30_000) - 1000}`);
    (await world.connect()).close();
    expect(nodeCeiling(world.edgeId).max).toBe(expectedCeiling());
  });

  it('are bounded, whatever each sandbox may have, and the host can fork', async () => {
    for (const index of [0, 1, 2]) await spawn(index);
    const ceiling = nodeCeiling(world.edgeId);
    const max = ceiling.lower(ROOM);
    expect([await fork(0), await fork(1)]).toEqual([WANTED, ROOM - WANTED]);
    expect([await fork(2), ceiling.current()]).toEqual([0, max]);
    expect(spawnSync('/bin/true').status).toBe(0);
    const late = world.spec({ name: 'late', generation: 1 }, { layers: [base], slot: 4 });
    await expect(launcher.client.spawn(late)).rejects.toMatchObject({ code: 'overloaded' });
    expect(ceiling.current()).toBe(max);
    // The launcher itself is not among them: it can end one when they are full, and then there is room.
    const [first] = boxes;
    await launcher.client.kill(first as (typeof boxes)[0]);
    await launcher.client.release(first as (typeof boxes)[0]);
    expect(await fork(2)).toBe(WANTED);
    ceiling.lift();
    expect(await fork(1)).toBeGreaterThan(0);
  });
});
