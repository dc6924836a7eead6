/**
 * An edge on a simulated node is lost at random moments, again and again, while sandboxes are made,
 * paused and stopped. What the next one says is true of the node, and no key makes anything twice.
 */
import type { EdgeCore } from '@dsec/edge';
import { createSeededRandom, type Random, type SandboxId } from '@dsec/std';
import { expect, it } from 'vitest';
import {
  CREATE,
  context,
  createCoreWorld,
  type OpenedCore,
  until,
} from '../../packages/edge/test/core-world.ts';

const SEED = Number(process.env.SEED ?? 7);
const isLong = process.env.DSEC_TEST_LONG === '1';
/** All that one node had is looked at in each of its rounds, so more of them cost more each. */
const ROUNDS = isLong ? 50 : 20;
const SEEDS = Array.from({ length: isLong ? 20 : 1 }, (_, n) => SEED + n);
const KEYS_PER_ROUND = 6;
const ROUND_MS = 25;

it.each(SEEDS)(`tells the truth after each of ${ROUNDS} losses (seed %i)`, async (seed) => {
  const random = createSeededRandom(seed);
  const node = createCoreWorld({ createStepMs: 2 });
  const idOfKey = new Map<string, SandboxId>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const opened = await node.open();
    await liveUntilLost(opened, round, random, idOfKey);
    const { core, crash } = await node.open();
    await untilSettled(core);
    checkTruth(core, node.world);
    await checkKeys(core, idOfKey);
    crash();
  }
  const { core } = await node.open();
  for (const entry of core.sandboxes.list()) await core.lifecycle.stop(entry, context());
  expect(node.world.leftovers()).toEqual([]);
});

/** Work goes on when the edge is gone; what it says then reaches nobody. */
async function liveUntilLost(
  { core, crash }: OpenedCore,
  round: number,
  random: Random,
  idOfKey: Map<string, SandboxId>,
): Promise<void> {
  let isLost = false;
  const create = async (key: string) => {
    const entry = await core.lifecycle.create(CREATE, context({ key }));
    if (!isLost) idOfKey.set(key, entry.id);
    const fate = random.int(4);
    if (fate >= 1) await core.lifecycle.pause(entry, context());
    if (fate >= 2) await core.sandboxes.requireRunning(entry.id);
    if (fate >= 3) await core.lifecycle.stop(entry, context());
  };
  for (let n = 0; n < KEYS_PER_ROUND; n += 1) {
    create(`r${round}-${n}`).catch(() => undefined);
  }
  await new Promise((resolve) => setTimeout(resolve, random.int(ROUND_MS)));
  isLost = true;
  crash();
}

async function untilSettled(core: EdgeCore): Promise<void> {
  const lasting = ['running', 'paused', 'stopped', 'failed'];
  await core.lifecycle.idle();
  await until(() => [...core.sandboxes.list()].every(({ state }) => lasting.includes(state)));
}

function checkTruth(core: EdgeCore, world: ReturnType<typeof createCoreWorld>['world']): void {
  const said = [...core.sandboxes.list()].filter(
    ({ state }) => state === 'running' || state === 'paused',
  );
  const there = [...world.sandboxes.values()].filter(({ end }) => end === undefined);
  expect(there.map(({ key }) => key.id).sort()).toEqual(said.map(({ id }) => id).sort());
  for (const { state, key } of said) {
    const isFrozen = there.find((sandbox) => sandbox.key.id === key.id)?.context.time.isFrozen;
    expect(isFrozen).toBe(state === 'paused');
  }
  expect(core.journal.db.prepare('SELECT count(*) FROM slots').pluck().get()).toBe(said.length);
}

async function checkKeys(core: EdgeCore, idOfKey: Map<string, SandboxId>): Promise<void> {
  for (const [key, id] of idOfKey) {
    const found = await core.lifecycle.create(CREATE, context({ key })).catch(() => undefined);
    if (found !== undefined) expect(found.id).toBe(id);
    expect(core.sandboxes.get(id).id).toBe(id);
  }
}
