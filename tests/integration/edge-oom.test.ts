/** The limit of memory through `dsec edge`, on real containers: who is killed, who is told, who lives on. */
import { join } from 'node:path';
import { ROUTES, type Sandbox } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { createEdgeHost, type EdgeHost, type EdgeProcess, paramsOf } from '../chaos/edge-world.ts';
import { openBackendWorld, openSharedStore, type SharedStore } from './backend-container-world.ts';

const isRoot = process.getuid?.() === 0;
const CREATE = {
  layers: ['base/small:1.0.0'],
  limits: { memoryBytes: 64 * MIB, diskBytes: 8 * MIB },
};
/** A shell that keeps all that it reads: it is killed long before the end. */
const EATER = 'x=$(tr "\\0" a < /dev/zero | head -c 200000000)';

let shared: SharedStore;
let host: EdgeHost;
let edge: EdgeProcess;

compileFirst(join(import.meta.dirname, '../../packages/dsec'));

const make = () => edge.client.call(ROUTES.createSandbox, { body: CREATE });

async function run(sandbox: Sandbox, shell: string) {
  const body = { shell, waitMs: 30_000 };
  return (await edge.client.call(ROUTES.startExec, { params: paramsOf(sandbox), body })).exec;
}

const killed = (oomKilled: boolean) => ({
  ...{ state: 'exited', exit: { signal: 9, oomKilled, timedOut: false } },
});
const well = { state: 'exited', exit: { exitCode: 0, oomKilled: false } };

describe.skipIf(!isRoot)('the limit of memory (needs root)', () => {
  beforeAll(async () => {
    shared = await openSharedStore();
    const world = await openBackendWorld(shared);
    await world.backend.close();
    host = createEdgeHost(world);
    edge = await host.start();
  }, 120_000);

  afterAll(async () => {
    await edge?.end('SIGTERM');
    await host?.world.close();
    shared?.remove();
  });

  it('kills the command that passes it, says so, and leaves everything else alive', async () => {
    const [eater, neighbour] = [await make(), await make()];
    const params = paramsOf(eater);
    const body = { argv: ['sleep', '600'] };
    const beside = await edge.client.call(ROUTES.startExec, { params, body });

    expect(await run(eater, EATER)).toMatchObject(killed(true));
    expect(await run(eater, 'true')).toMatchObject(well);
    expect(await run(neighbour, 'true')).toMatchObject(well);
    const lives = await edge.client.call(ROUTES.getExec, {
      params: { ...params, execId: beside.exec.id },
      query: {},
    });
    expect(lives.state).toBe('running');

    // Neither killed by somebody else nor an earlier kill is the limit's work.
    expect(await run(eater, 'kill -9 $$')).toMatchObject(killed(false));
  });

  it('is counted anew for the next sandbox, by another edge too', async () => {
    const first = await make();
    expect(await run(first, EATER)).toMatchObject(killed(true));
    await edge.client.call(ROUTES.stopSandbox, { params: paramsOf(first) });
    const next = await make();
    await edge.end('SIGKILL');
    edge = await host.start();
    expect(await run(next, 'kill -9 $$')).toMatchObject(killed(false));
    expect(await run(next, EATER)).toMatchObject(killed(true));
  });
});
