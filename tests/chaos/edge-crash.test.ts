/**
 * The daemon is killed at each of its crash points, in the middle of the life of sandboxes on real
 * containers, and at random moments, with its launcher, an agent, or both; the next one must find the world
 * as the journal says. The suite fails when a point was never reached.
 */
import { join } from 'node:path';
import { CRASH_POINTS, type CrashPoint } from '@dsec/edge';
import { ROUTES } from '@dsec/protocol';
import { createSeededRandom, type SandboxId } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import {
  openBackendWorld,
  openSharedStore,
  type SharedStore,
} from '../integration/backend-container-world.ts';
import {
  createEdgeHost,
  type EdgeHost,
  type EdgeProcess,
  paramsOf,
  settledStateOf,
} from './edge-world.ts';

const isRoot = process.getuid?.() === 0;

const SEED = Number(process.env.SEED ?? 7);
const RANDOM_KILLS = process.env.DSEC_TEST_LONG === '1' ? 240 : 4;
/** Who dies at a random moment. The daemon dies at the end at the latest. */
const VICTIMS = ['edge', 'edge and launcher', 'edge and agent', 'launcher and agent'] as const;
/** Nodes that are used at a time: much of a life is waiting. */
const NODES = 3;
/** About as long as everything that happens to sandboxes takes. */
const LIFE_MS = 4000;
/** What an edge does by itself after the last call comes within that. */
const PATIENCE_MS = 10_000;

const CREATE = {
  layers: ['base/small:1.0.0'],
  network: rulesOf('pypi'),
  policy: {
    version: 1 as const,
    stages: { solve: { files: [{ path: '/root/**', access: ['hide' as const] }] } },
  },
  limits: { memoryBytes: 128 * 2 ** 20, diskBytes: 8 * 2 ** 20, pidsMax: 64 },
};
const RULES = { before: rulesOf('pypi'), after: rulesOf('npm') };
/** Enough output for several writes to the spool. */
const COMMAND = { argv: ['seq', '1', '20000'], waitMs: 20_000 };
const OUTPUT_BYTES = 108_894;

const stores: SharedStore[] = [];
const hosts: EdgeHost[] = [];
/** For a node, the first one first: more tests run at a time than there are nodes. */
const waiting: ((host: EdgeHost) => void)[] = [];
let round = 0;
const reached = new Set<CrashPoint>();

compileFirst(join(import.meta.dirname, '../../packages/dsec'));

describe.skipIf(!isRoot)('an edge that is killed (needs root)', () => {
  beforeAll(async () => {
    for (let n = 0; n < NODES; n += 1) {
      const shared = await openSharedStore();
      stores.push(shared);
      const world = await openBackendWorld(shared);
      hosts.push(createEdgeHost(world));
      await world.backend.close();
    }
  }, 120_000);

  afterAll(async () => {
    await Promise.all(hosts.map((host) => host.close()));
    for (const shared of stores) shared.remove();
  }, 60_000);

  describe.concurrent('leaves a world that the next one knows', () => {
    it.each(CRASH_POINTS)('at %s', (point) =>
      onFreeHost(async (host, name) => {
        const keepEndedMs = point.startsWith('forget') ? 50 : 600_000;
        const dying = await host.start({ crashPoint: point, keepEndedMs });
        await liveALife(host, dying, name).catch((thrown) => {
          if (dying.isAlive() && !isLost(thrown)) throw thrown;
        });
        if (dying.isAlive()) await Promise.race([dying.ended, pause(PATIENCE_MS)]);
        expect(dying.isAlive(), `${point} was never reached`).toBe(false);
        expect(await dying.ended).toBe('SIGKILL');
        reached.add(point);
        await dying.client.close();
        await checkNextEdge(host, name);
      }),
    );

    it.each(randomKills())('at any moment: $name', ({ victims, afterMs }) =>
      onFreeHost(async (host, name) => {
        const dying = await host.start();
        const life = liveALife(host, dying, name).catch(() => undefined);
        await Promise.race([life, pause(afterMs)]);
        if (victims.includes('edge')) await dying.end('SIGKILL');
        if (victims.includes('launcher')) host.killLauncher();
        const [someone] = victims.includes('agent') ? host.lives() : [];
        if (someone !== undefined) host.killAgent(someone as SandboxId);
        await life;
        if (dying.isAlive()) await dying.end('SIGKILL');
        await checkNextEdge(host, name);
      }),
    );
  });

  it('was killed at every point', () => {
    expect([...reached].sort()).toEqual([...CRASH_POINTS].sort());
  });
});

/** Each victim dies as often as the others. */
function randomKills() {
  const random = createSeededRandom(SEED);
  return Array.from({ length: RANDOM_KILLS }, (_, n) => {
    const victims = VICTIMS[n % VICTIMS.length] ?? 'edge';
    const afterMs = random.int(LIFE_MS);
    return { name: `${victims} (${n + 1}, seed ${SEED})`, victims, afterMs };
  });
}

/** Waits for a node that nobody uses. The name is of the round, for its keys. */
async function onFreeHost(use: (host: EdgeHost, name: string) => Promise<void>): Promise<void> {
  const host = hosts.pop() ?? (await new Promise<EdgeHost>((resolve) => waiting.push(resolve)));
  try {
    round += 1;
    await use(host, `r${round}`);
  } finally {
    const next = waiting.shift();
    if (next === undefined) hosts.push(host);
    else next(host);
  }
}

function rulesOf(service: string) {
  return [{ kind: 'service' as const, target: service }];
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The answer went missing with the edge. */
function isLost(thrown: unknown): boolean {
  return (thrown as { code?: string }).code === 'unavailable';
}

/** Everything that happens to sandboxes, so that every point is passed. */
async function liveALife(host: EdgeHost, { client }: EdgeProcess, name: string): Promise<void> {
  const key = (what: string) => ({ idempotencyKey: `${name}-${what}` });
  const first = await client.call(ROUTES.createSandbox, { body: CREATE }, key('first'));
  const params = { params: paramsOf(first) };
  const run = await client.call(ROUTES.startExec, { ...params, body: COMMAND }, key('run'));
  expect(run.exec).toMatchObject({ state: 'exited', exit: { exitCode: 0 } });
  const directory = { path: '/tmp/made' };
  await client.call(ROUTES.makeDirectory, { ...params, body: directory }, key('directory'));
  await client.call(ROUTES.pauseSandbox, params);
  await client.call(ROUTES.startExec, { ...params, body: COMMAND }, key('resume'));
  const change = { version: first.network?.version ?? 0, rules: RULES.after };
  await client.call(ROUTES.updateNetwork, { ...params, body: change });
  await client.call(ROUTES.setSandboxStage, { ...params, body: { stage: 'solve' } });
  const second = await client.call(ROUTES.createSandbox, { body: CREATE }, key('second'));
  host.killAgent(second.id as SandboxId);
  await client.call(ROUTES.stopSandbox, params);
}

/** A new daemon tells the truth, keeps what was promised, and can end everything. */
async function checkNextEdge(host: EdgeHost, name: string): Promise<void> {
  const edge = await host.start();
  await checkWorld(host, edge);
  await checkKeys(host, edge, name);
  await stopAll(edge);
  await edge.end('SIGTERM');
  expect(host.lives()).toEqual([]);
  expect(await host.world.leftovers()).toEqual([]);
  expect(host.rows('slots')).toBe(0);
}

/** What is said to run does, and nothing else exists. */
async function checkWorld(host: EdgeHost, edge: EdgeProcess): Promise<void> {
  const sandboxes = await settledStateOf(edge);
  const living = sandboxes.filter(({ state }) => state === 'running' || state === 'paused');
  for (const sandbox of living) {
    // The old rules or the new ones, whole.
    const { network } = await edge.client.call(ROUTES.getSandbox, { params: paramsOf(sandbox) });
    expect([RULES.before, RULES.after]).toContainEqual(network?.rules);
    const body = { argv: ['sh', '-c', 'touch /root/new'], waitMs: 20_000 };
    const { exec } = await edge.client.call(ROUTES.startExec, { params: paramsOf(sandbox), body });
    // A stage or none, whole: a switch that was begun has been gone on with.
    const { stage } = await edge.client.call(ROUTES.getSandbox, { params: paramsOf(sandbox) });
    const exitCode = stage === 'solve' ? 1 : 0;
    expect(exec).toMatchObject({ state: 'exited', exit: { exitCode } });
  }
  await eventually(() => expect(host.lives().sort()).toEqual(living.map(({ id }) => id).sort()));
}

/** The same keys make nothing twice, and a command has run once, or is said to be unknown. */
async function checkKeys(host: EdgeHost, { client }: EdgeProcess, name: string): Promise<void> {
  const before = new Set(host.lives());
  const key = { idempotencyKey: `${name}-first` };
  const again = await client.call(ROUTES.createSandbox, { body: CREATE }, key).catch((thrown) => {
    expect(['unavailable', 'not-found', 'cancelled']).toContain(thrown.code);
    return undefined;
  });
  if (again === undefined || again.state !== 'running') return;
  // A create whose intent had not been written is made now; every other one is found.
  if (before.size > 0) expect(before).toContain(again.id);
  const run = await client.call(
    ROUTES.startExec,
    { params: paramsOf(again), body: COMMAND },
    { idempotencyKey: `${name}-run` },
  );
  expect(run.exec).toMatchObject({
    ...{ state: 'exited', exit: { exitCode: 0 } },
    stdout: { totalBytes: OUTPUT_BYTES },
  });
}

async function stopAll(edge: EdgeProcess): Promise<void> {
  for (const sandbox of await settledStateOf(edge)) {
    await edge.client.call(ROUTES.stopSandbox, { params: paramsOf(sandbox) });
  }
}

/** Removal goes on after an end was told. */
async function eventually(check: () => void): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      check();
      return;
    } catch (thrown) {
      if (attempt === 200) throw thrown;
      await pause(25);
    }
  }
}
