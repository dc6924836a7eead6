import { createSeededRandom, MIB, systemClock, systemRandom } from '@dsec/std';
import { afterEach, describe, expect, test } from 'vitest';
import { execFields, run } from '../src/conformance/command-run.ts';
import { type AgentLink, connectAgent } from '../src/index.ts';
import {
  createSimBackend,
  createSimWorld,
  HOSTILE_MODES,
  type HostileMode,
} from '../src/sim/index.ts';
import { createPlanner } from './sim-harness.ts';

/** How the link ends; `lives`: its stream alone is spoilt. */
const OUTCOMES: Readonly<Record<HostileMode, string>> = {
  'bad-lengths': 'protocol',
  'unknown-types': 'protocol',
  noise: 'protocol',
  'wrong-welcome': 'agent-lost',
  'credit-overrun': 'protocol',
  'wrong-offsets': 'protocol',
  'stream-reuse': 'protocol',
  'many-streams': 'protocol',
  'tiny-frames': 'protocol',
  'control-flood': 'protocol',
  'many-exits': 'lives',
  'never-reads': 'lives',
  'early-close': 'unavailable',
};

const LIVES_MS = 200;
const MEMORY_BYTES_MAX = 64 * MIB;
const plan = createPlanner(5);
const links: AgentLink[] = [];

async function connected(hostile?: HostileMode): Promise<AgentLink> {
  const random = createSeededRandom(3);
  const clock = systemClock;
  const world = createSimWorld({ clock, random, ...(hostile && { hostile }) });
  const backend = createSimBackend(world);
  const { key } = plan();
  await backend.create({ ...plan(), key });
  const link = await connectAgent({
    dial: (signal) => backend.dial(key, signal),
    sandboxId: key.id,
    epoch: 1,
    random: systemRandom,
    clock,
    limits: { helloMs: 300 },
  });
  links.push(link);
  return link;
}

async function outcomeOf(mode: HostileMode): Promise<string> {
  const link = await connected(mode).catch((error) => String(error.code));
  if (typeof link === 'string') return link;
  await link.open().send('exec-start', execFields(['true']));
  const lives = systemClock.sleep(LIVES_MS).then(() => 'lives');
  const ended = link.closed.then((error) => error.code);
  return OUTCOMES[mode] === 'lives' ? Promise.race([ended, lives]) : ended;
}

describe('an agent that was taken over', () => {
  afterEach(() => {
    for (const link of links.splice(0)) link.close();
  });

  test.each(HOSTILE_MODES)('%s: its link alone ends, memory stays', async (mode) => {
    const neighbour = await connected();
    const before = process.memoryUsage();
    const attacked = outcomeOf(mode);
    for (let round = 0; round < 5; round += 1) {
      expect((await run(neighbour, ['exit', '3'])).exitCode).toBe(3);
    }
    expect(await attacked).toBe(OUTCOMES[mode]);
    const after = process.memoryUsage();
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(MEMORY_BYTES_MAX);
    expect((await run(neighbour, ['exit', '4'])).exitCode).toBe(4);
  });
});
