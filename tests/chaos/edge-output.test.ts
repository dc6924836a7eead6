/**
 * A command counts to a million, or to ten, while the daemon is killed again and again. Its reader goes on
 * at the offset that it has: every byte comes once, in order.
 */
import { createHash, type Hash } from 'node:crypto';
import { join } from 'node:path';
import { ROUTES, type Sandbox } from '@dsec/protocol';
import { createSeededRandom, type ExecId } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import {
  openBackendWorld,
  openSharedStore,
  type SharedStore,
} from '../integration/backend-container-world.ts';
import { createEdgeHost, type EdgeHost, type EdgeProcess, paramsOf } from './edge-world.ts';

const isRoot = process.getuid?.() === 0;

const SEED = Number(process.env.SEED ?? 7);
const isLong = process.env.DSEC_TEST_LONG === '1';
const KILLS = isLong ? 20 : 8;
const COUNT = isLong ? 10_000_000 : 1_000_000;
const PARTS = 2 * KILLS;
/** In parts with pauses, so that the kills come while it runs. */
const SCRIPT = `i=0; while [ $i -lt ${PARTS} ]; do
  seq $((i * ${COUNT / PARTS} + 1)) $(((i + 1) * ${COUNT / PARTS})); sleep 0.4; i=$((i + 1)); done`;

let shared: SharedStore;
let host: EdgeHost;

compileFirst(join(import.meta.dirname, '../../packages/dsec'));

describe.skipIf(!isRoot)('output (needs root)', () => {
  beforeAll(async () => {
    shared = await openSharedStore();
    const world = await openBackendWorld(shared);
    await world.backend.close();
    host = createEdgeHost(world);
  }, 120_000);

  afterAll(async () => {
    await host?.world.close();
    shared?.remove();
  });

  it(`is whole across ${KILLS} kills of the edge (seed ${SEED})`, async () => {
    const random = createSeededRandom(SEED);
    const wanted = expectedHash();
    let edge = await host.start();
    const sandbox = await edge.client.call(ROUTES.createSandbox, {
      body: { layers: ['base/small:1.0.0'] },
    });
    const body = { shell: SCRIPT, outputBytesMax: 2 ** 27 };
    const { exec } = await edge.client.call(ROUTES.startExec, { params: paramsOf(sandbox), body });
    const hash = createHash('sha256');
    let offset = 0;
    for (let kills = 0; kills < KILLS; kills += 1) {
      const reading = follow(edge, sandbox, exec.id, offset, hash);
      await new Promise((resolve) => setTimeout(resolve, 50 + random.int(400)));
      await edge.end('SIGKILL');
      offset = await reading;
      edge = await host.start();
    }
    offset = await follow(edge, sandbox, exec.id, offset, hash);
    expect(offset).toBe(wanted.bytes);
    expect(hash.digest('hex')).toBe(wanted.digest);
    const params = { ...paramsOf(sandbox), execId: exec.id };
    const ended = await edge.client.call(ROUTES.getExec, { params, query: { waitMs: 20_000 } });
    expect(ended).toMatchObject({
      ...{ state: 'exited', exit: { exitCode: 0 } },
      stdout: { totalBytes: wanted.bytes, truncated: false, ended: true },
    });
    await edge.client.call(ROUTES.stopSandbox, { params: paramsOf(sandbox) });
    await edge.end('SIGTERM');
    expect(await host.world.leftovers()).toEqual([]);
  });
});

/** Adds what comes from an offset on, until its end or that of the edge. Returns the next offset. */
async function follow(
  { client }: EdgeProcess,
  sandbox: Sandbox,
  execId: string,
  offset: number,
  hash: Hash,
): Promise<number> {
  let next = offset;
  const params = { ...paramsOf(sandbox), execId: execId as ExecId };
  try {
    const output = await client.call(ROUTES.readExecOutput, {
      params,
      query: { offset, follow: true },
    });
    expect(Number(output.headers['dsec-offset'])).toBe(offset);
    for await (const bytes of output.body) {
      hash.update(bytes);
      next += bytes.byteLength;
    }
  } catch (thrown) {
    expect((thrown as { code?: string }).code).toBe('unavailable');
  }
  return next;
}

function expectedHash(): { bytes: number; digest: string } {
  const hash = createHash('sha256');
  const [step, state] = [100_000, { bytes: 0 }];
  for (let from = 1; from <= COUNT; from += step) {
    const lines = Array.from({ length: step }, (_, n) => from + n).join('\n');
    hash.update(`${lines}\n`);
    state.bytes += lines.length + 1;
  }
  return { bytes: state.bytes, digest: hash.digest('hex') };
}
