/**
 * Row 74 of the threats: an agent that has been taken over harms its own sandbox alone. The edge has a
 * neighbour with an agent of the right kind, whose commands go on all the while.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Backend, SandboxKey } from '@dsec/backend';
import {
  createSimBackend,
  createSimWorld,
  HOSTILE_MODES,
  type HostileMode,
} from '@dsec/backend/sim';
import { defaultNodePolicy, type Edge, openEdge, type SandboxEntry } from '@dsec/edge';
import { createSeededRandom, MIB, parseEdgeId, parseShardId, systemClock } from '@dsec/std';
import { expect, it, onTestFinished } from 'vitest';
import { BOOT_ID, CREATE, ENVIRONMENTS, HOST } from '../../packages/edge/test/core-world.ts';
import { until } from '../integration/launcher-world.ts';
import { context } from './security-world.ts';

/** Sandboxes made while `switches.hostile` is set have agents of that kind. */
function createMixedBackend(mode: HostileMode) {
  const random = createSeededRandom(17);
  const options = { clock: systemClock, random };
  const good = createSimBackend(createSimWorld(options));
  const bad = createSimBackend(createSimWorld({ ...options, hostile: mode }));
  const switches = { hostile: false };
  const owners = new Map<string, Backend>();
  const of = ({ id }: SandboxKey) => owners.get(id) ?? good;
  const backend: Backend = {
    kind: good.kind,
    probe: (signal) => good.probe(signal),
    create(plan, signal) {
      owners.set(plan.key.id, switches.hostile ? bad : good);
      return of(plan.key).create(plan, signal);
    },
    dial: (key, signal) => of(key).dial(key, signal),
    stop: (key, signal) => of(key).stop(key, signal),
    update: (key, limits, signal) => of(key).update(key, limits, signal),
    freeze: (key, signal) => of(key).freeze(key, signal),
    thaw: (key, signal) => of(key).thaw(key, signal),
    pause: (key, signal) => of(key).pause(key, signal),
    resume: (key, signal) => of(key).resume(key, signal),
    stats: (key, signal) => of(key).stats(key, signal),
    async recover(claims, signal) {
      await bad.recover([], signal);
      return good.recover(claims, signal);
    },
    onExit(listener) {
      good.onExit(listener);
      bad.onExit(listener);
    },
    async close() {
      await good.close();
      await bad.close();
    },
  };
  return { backend, switches, random };
}

async function openMixedEdge(mode: HostileMode) {
  const stateRoot = mkdtempSync(join(tmpdir(), 'dsec-hostile-'));
  const { backend, switches, random } = createMixedBackend(mode);
  const edge = await openEdge(
    {
      ...{ stateRoot, random, clock: systemClock, bootId: BOOT_ID, environments: ENVIRONMENTS },
      ...{ edgeId: parseEdgeId('e1'), shardId: parseShardId('s1') },
      ...{ policy: defaultNodePolicy(HOST), probe: () => HOST, version: 'tests' },
      openBackend: async () => backend,
      log: { info: () => undefined, warn: () => undefined },
      doctor: async () => ({}) as never,
    },
    new AbortController().signal,
  );
  onTestFinished(async () => {
    await edge.close();
    rmSync(stateRoot, { recursive: true, force: true });
  });
  return { edge, switches };
}

const PATIENCE_MS = 10_000;

async function count(edge: Edge, neighbour: SandboxEntry): Promise<void> {
  const spec = { argv: ['count', '2000'], waitMs: PATIENCE_MS };
  const { exec, stdout } = await edge.exec.execs.start(neighbour, spec, context());
  expect(exec.exit).toMatchObject({ exitCode: 0 });
  expect(stdout?.text.split('\n')).toHaveLength(2001);
}

/** These send what an agent may send, if in no good way: they get the bounds of a wire, and no more. */
const WITHIN_THE_WIRE: readonly HostileMode[] = [
  ...(['credit-overrun', 'tiny-frames', 'control-flood', 'many-exits'] as const),
  ...(['never-reads', 'early-close'] as const),
];
const RSS_GROWTH_MAX = 192 * MIB;

it.each(HOSTILE_MODES)('%s: its own sandbox alone is harmed', { timeout: 60_000 }, async (mode) => {
  const { edge, switches } = await openMixedEdge(mode);
  const neighbour = await edge.lifecycle.create(CREATE, context());
  await count(edge, neighbour);
  const rssBefore = process.memoryUsage.rss();
  switches.hostile = true;
  await edge.lifecycle.create(CREATE, context()).catch(() => undefined);
  const entry = [...edge.sandboxes.list()].find(({ id }) => id !== neighbour.id);
  if (mode === 'wrong-welcome') {
    expect(entry).toMatchObject({ state: 'failed', endReason: 'agent' });
  } else {
    const spec = { argv: ['anything'], waitMs: 1000 };
    const attacked = edge.exec.execs.start(entry as SandboxEntry, spec, context());
    for (let round = 0; round < 10; round += 1) await count(edge, neighbour);
    await attacked.catch(() => undefined);
    if (!WITHIN_THE_WIRE.includes(mode)) {
      await until('it has ended', () => (entry?.state === 'failed' ? true : undefined));
      expect(entry).toMatchObject({ endReason: 'protocol' });
    }
  }
  await count(edge, neighbour);
  expect(neighbour.state).toBe('running');
  expect(process.memoryUsage.rss() - rssBefore).toBeLessThan(RSS_GROWTH_MAX);
});

/** Without it, the same attack would be told from a good agent by nothing. */
it('a good agent beside a good neighbour ends nothing', async () => {
  const { edge } = await openMixedEdge('noise');
  const [first, second] = [
    await edge.lifecycle.create(CREATE, context()),
    await edge.lifecycle.create(CREATE, context()),
  ];
  await count(edge, first);
  await count(edge, second);
  expect([first.state, second.state]).toEqual(['running', 'running']);
});
