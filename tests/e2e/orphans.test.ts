/** Clients that leave in every way: nothing stays beyond its time to live, and nothing is made twice. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, type Sandbox } from '@dsec/libdsec';
import { createSeededRandom } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { type ServerWorld, startServerWorld } from './server-world.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const ALIVE = ['creating', 'running', 'pausing', 'paused', 'resuming', 'stopping'] as const;
const LIFETIME_MS = 1500;
const PATIENCE_MS = 60_000;

/** Makes one after the other, until it is killed. */
const MAKER = `
  import { Client } from '@dsec/libdsec';
  const [environment, job] = process.argv.slice(1);
  const client = new Client();
  for (;;) {
    await client.create({ environment, job, ttl: { lifetimeMs: ${LIFETIME_MS}, graceMs: 0 } });
    console.log('made');
  }
`;

compileFirst(join(ROOT, 'packages/dsec'));

describe('clients that leave', () => {
  let world: ServerWorld;
  let client: Client;
  let environment = '';

  beforeAll(async () => {
    world = await startServerWorld({ backend: 'sim' });
    const { url, api_key: apiKey } = world.variables;
    environment = world.variables.environment;
    client = new Client({ url, apiKey });
  });
  afterAll(async () => {
    await client?.close();
    await world?.stop();
  });

  const idsOf = async (job: string, state?: readonly (typeof ALIVE)[number][]) => {
    const ids: string[] = [];
    for await (const { id } of client.list({ job, state })) ids.push(id);
    return ids.sort();
  };

  const untilNone = async (job: string) => {
    const endMs = performance.now() + PATIENCE_MS;
    while (performance.now() < endMs) {
      if ((await idsOf(job, ALIVE)).length === 0) return;
      await setTimeout(200);
    }
    expect(await idsOf(job, ALIVE)).toEqual([]);
  };

  it('with half of 100 creates refused have what was made, each found at once, and no other', async () => {
    const job = 'half';
    const create = async (index: number): Promise<Sandbox> => {
      const source = index % 2 === 0 ? { environment } : { layers: ['base/absent:1.0.0'] };
      const made = await client.create({ ...source, job });
      expect((await client.get(made.id)).id).toBe(made.id);
      return made;
    };
    const outcomes = await Promise.allSettled(Array.from({ length: 100 }, (_, i) => create(i)));
    const made = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : []));
    const codes = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
    expect(codes).toEqual(Array.from({ length: 50 }, () => 'not-found'));
    expect(await idsOf(job)).toEqual(made.sort());
    expect(await client.jobs.stop(job)).toMatchObject({ matched: 50, changed: 50, failed: 0 });
  });

  it('in the middle of a create leave nothing beyond its lifetime', async () => {
    const job = 'aborted';
    const random = createSeededRandom(11);
    const ttl = { lifetimeMs: LIFETIME_MS, graceMs: 0 };
    const creates = Array.from({ length: 40 }, () => {
      const signal = AbortSignal.timeout(random.int(60));
      return client.create({ environment, job, ttl, signal });
    });
    await Promise.allSettled(creates);
    await untilNone(job);
  });

  it('in the middle of a batch find what was made by its key', async () => {
    const options = { environment, job: 'batch', idempotencyKey: 'batch-1' };
    for await (const _ of client.createMany(12, options)) break;
    const ids: string[] = [];
    for await (const one of client.createMany(12, options)) ids.push((one as Sandbox).id);
    expect(new Set(ids).size).toBe(12);
    expect(await idsOf('batch')).toEqual(ids.sort());
    await client.jobs.stop('batch');
  });

  it.each(['SIGKILL', 'SIGINT'] as const)(
    'by %s leave nothing beyond its lifetime',
    async (signal) => {
      const job = `killed-${signal.toLowerCase()}`;
      const args = ['--input-type=module', '-e', MAKER, environment, job];
      const env = { ...process.env, DSEC_CLIENT: join(world.state, 'client.json') };
      const maker = spawn(process.execPath, args, {
        ...{ cwd: ROOT, env },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await once(maker.stdout, 'data');
      await setTimeout(300);
      const ended = once(maker, 'exit');
      maker.kill(signal);
      await ended;
      expect((await idsOf(job)).length).toBeGreaterThan(0);
      await untilNone(job);
    },
  );
});
