/** What is killed or left half done: the parts that may die, and who cleans up. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asDsecError } from '@dsec/std';
import { expect } from 'vitest';
import { until } from '../integration/launcher-world.ts';
import { type Row, withBox } from './rows.ts';
import { type Box, context, type SecurityWorld } from './security-world.ts';

const COUNTING = 'i=0; while :; do i=$((i+1)); echo $i > /tmp/count; done';

const countIn = async (box: Box) => (await box.readFile('/tmp/count')).toString();

/** It does its work: what it counted is not what it counted a moment ago. */
async function expectCounting(box: Box): Promise<void> {
  const before = await countIn(box);
  await until('it counts on', async () => (await countIn(box)) !== before || undefined);
}

const freezeFile = (box: Box) => join(box.host.group(), 'cgroup.freeze');
const isFrozen = (box: Box) =>
  readFileSync(join(box.host.group(), 'cgroup.events'), 'utf8').includes('frozen 1');

async function endOf(world: SecurityWorld, box: Box): Promise<string | undefined> {
  await until('its end is told', () => world.edge.sandboxes.get(box.entry.id).endReason);
  return box.entry.endReason;
}

/** The edge, then the launcher, then an agent: the others go on, and nobody says what is not true. */
async function expectOthersGoOn(world: SecurityWorld): Promise<void> {
  const [dies, lives] = [await world.make(), await world.make()];
  for (const box of [dies, lives]) await box.start(`echo begins; ${COUNTING}`, 'begins');
  const agents = () => [dies, lives].map((box) => box.host.agent().pid);
  const before = agents();

  await world.reopen(async () => {
    // With no edge and no launcher, one of them ends: the next edge says so, and that it was killed.
    await world.node.killLauncher();
    process.kill(before[0] ?? 0, 'SIGKILL');
    await world.node.startLauncher();
  });
  expect(await endOf(world, dies)).toBe('killed');
  expect(lives.host.agent().pid).toBe(before[1]);
  await expectCounting(lives);

  await world.node.killLauncher();
  await expectCounting(lives);
  const refused = world.edge.lifecycle.pause(lives.entry, context()).then(
    () => 'done',
    (thrown: unknown) => asDsecError(thrown).code,
  );
  await world.node.startLauncher();
  expect(['done', 'unavailable']).toContain(await refused);
  await world.edge.sandboxes.requireRunning(lives.entry.id);
  await expectCounting(lives);

  process.kill(lives.host.agent().pid, 'SIGKILL');
  expect(await endOf(world, lives)).toBe('killed');
  await until('nothing is left of them', async () => {
    const left = await world.node.leftovers();
    return [dies, lives].every(({ entry }) => !left.join().includes(entry.id)) || undefined;
  });
}

/** Somebody freezes it while no launcher is there: nobody thaws it. The next edge does. */
async function expectFoundFrozen(world: SecurityWorld, box: Box): Promise<void> {
  await world.reopen(async () => {
    await world.node.killLauncher();
    writeFileSync(freezeFile(box), '1');
    await until('it is frozen', () => isFrozen(box) || undefined);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(isFrozen(box)).toBe(true);
    await world.node.startLauncher();
  });
  expect(box.entry.state).toBe('running');
  await expectCounting(box);
}

/** Somebody freezes what runs, and thaws what is paused: neither stays so. */
async function expectKept(world: SecurityWorld, box: Box): Promise<void> {
  const setting = () => readFileSync(freezeFile(box), 'utf8').trim();
  writeFileSync(freezeFile(box), '1');
  await until('it is to run', () => setting() === '0' || undefined);
  await expectCounting(box);
  await world.edge.lifecycle.pause(box.entry, context());
  writeFileSync(freezeFile(box), '0');
  await until('it is to rest', () => setting() === '1' || undefined);
  await until('it is frozen', () => isFrozen(box) || undefined);
  expect(box.entry.state).toBe('paused');
}

/** The edge that froze it is gone: one that is paused rests on, another runs. */
async function expectThawed(world: SecurityWorld, box: Box): Promise<void> {
  await world.reopen();
  expect([box.entry.state, isFrozen(box)]).toEqual(['paused', true]);
  await world.edge.lifecycle.resume(box.entry, context());
  await expectCounting(box);
  await world.edge.backend.freeze(box.entry.key);
  await world.reopen(async () => expect(isFrozen(box)).toBe(true));
  expect(box.entry.state).toBe('running');
  await expectCounting(box);
}

/** As a sandbox would be that nothing keeps apart from its launcher. */
function livesOnWithoutParent(): Promise<boolean> {
  const child = 'setpriv --pdeathsig KILL sleep 600 & echo $!; wait';
  const parent = spawn('sh', ['-c', child], { stdio: ['ignore', 'pipe', 'inherit'] });
  return once(parent.stdout, 'data').then(async ([pid]) => {
    const exited = once(parent, 'exit');
    await new Promise((resolve) => setTimeout(resolve, 200));
    parent.kill('SIGKILL');
    await exited;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return existsSync(`/proc/${Number(pid)}/exe`);
  });
}

export const CRASH_ROWS: readonly Row[] = [
  {
    ...{
      id: 93,
      name: 'kill-any',
      expected: 'whatever is killed: the others go on, ends are told, nothing is left',
    },
    later: 'each step of a life, hundreds of times by seed: tests/chaos/edge-crash.test.ts',
    async check(world) {
      // A process that is bound to the one that made it is gone with it: the host would show that.
      expect(await livesOnWithoutParent()).toBe(false);
      await expectOthersGoOn(world);
    },
  },
  {
    ...{
      id: 100,
      name: 'frozen-orphan',
      expected: 'what others froze runs, and what an edge froze that died; what is paused rests',
    },
    later: 'an edge that dies in the middle of a pause: tests/chaos/edge-crash.test.ts',
    check: (world) =>
      withBox(world, async (box) => {
        await box.start(`echo begins; ${COUNTING}`, 'begins');
        await expectFoundFrozen(world, box);
        await expectKept(world, box);
        await expectThawed(world, box);
      }),
  },
];
