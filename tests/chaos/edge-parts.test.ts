/**
 * A running `dsec edge` whose parts are killed one after the other, as an operator or the kernel would:
 * the edge, its launcher, an agent, then all three at once. Nothing else is hurt, and what is told is true.
 */
import { join } from 'node:path';
import { type Exec, ROUTES, type Sandbox } from '@dsec/protocol';
import type { ExecId, SandboxId } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import {
  openBackendWorld,
  openSharedStore,
  type SharedStore,
} from '../integration/backend-container-world.ts';
import { until } from '../integration/launcher-world.ts';
import {
  createEdgeHost,
  type EdgeHost,
  type EdgeProcess,
  paramsOf,
  stateOf,
} from './edge-world.ts';

const isRoot = process.getuid?.() === 0;
const CREATE = {
  layers: ['base/small:1.0.0'],
  limits: { memoryBytes: 128 * 2 ** 20, diskBytes: 8 * 2 ** 20, pidsMax: 64 },
};
const COUNTING = { shell: 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done' };

interface Counting {
  readonly sandbox: Sandbox;
  readonly exec: Exec;
}

compileFirst(join(import.meta.dirname, '../../packages/dsec'));

describe.skipIf(!isRoot)('the parts of an edge that are killed (needs root)', () => {
  let shared: SharedStore;
  let host: EdgeHost;
  let edge: EdgeProcess;

  beforeAll(async () => {
    shared = await openSharedStore();
    const world = await openBackendWorld(shared);
    host = createEdgeHost(world);
    await world.backend.close();
    // From here on the daemon has to see to it itself.
    await world.killLauncher();
  }, 120_000);
  afterAll(async () => {
    if (edge?.isAlive()) await edge.end('SIGKILL');
    await host.close();
    shared.remove();
  });

  const count = async (): Promise<Counting> => {
    const sandbox = await edge.client.call(ROUTES.createSandbox, { body: CREATE });
    const params = paramsOf(sandbox);
    const { exec } = await edge.client.call(ROUTES.startExec, { params, body: COUNTING });
    return { sandbox, exec };
  };
  const execOf = ({ sandbox, exec }: Counting) => {
    const params = { ...paramsOf(sandbox), execId: exec.id as ExecId };
    return edge.client.call(ROUTES.getExec, { params, query: {} });
  };
  const expectCounting = async (counting: Counting) => {
    const before = (await execOf(counting)).stdout.totalBytes;
    await until('it counts on', async () => {
      const { state, stdout } = await execOf(counting);
      // The first look may come before the agent has said that it runs.
      expect(['starting', 'running']).toContain(state);
      return stdout.totalBytes > before || undefined;
    });
  };
  const endOf = ({ sandbox }: Counting) =>
    until('its end is told', async () => {
      const { endReason } = (await stateOf(edge)).find(({ id }) => id === sandbox.id) ?? {};
      return endReason;
    });

  it('hurt nobody else, and are there again', async () => {
    edge = await host.start();
    const [lives, dies, rests] = [await count(), await count(), await count()];
    await expectCounting(rests);
    await edge.client.call(ROUTES.pauseSandbox, { params: paramsOf(rests.sandbox) });

    await edge.end('SIGKILL');
    edge = await host.start();
    await expectCounting(lives);
    // Not asked, since it is paused: what is known of it is said.
    expect(await execOf(rests)).toMatchObject({ state: 'running' });

    host.killLauncher();
    await expectCounting(lives);
    const late = await until('another launcher makes sandboxes', () =>
      count().catch(() => undefined),
    );

    host.killAgent(dies.sandbox.id as SandboxId);
    expect(await endOf(dies)).toBe('killed');
    expect(await execOf(dies)).toMatchObject({ state: 'unknown', error: { code: 'agent-lost' } });
    await expectCounting(late);

    host.killLauncher();
    host.killAgent(late.sandbox.id as SandboxId);
    await edge.end('SIGKILL');
    edge = await host.start();
    expect(await endOf(late)).toBe('killed');
    await expectCounting(lives);
    await edge.client.call(ROUTES.resumeSandbox, { params: paramsOf(rests.sandbox) });
    await expectCounting(rests);

    for (const sandbox of await stateOf(edge)) {
      await edge.client.call(ROUTES.stopSandbox, { params: paramsOf(sandbox) });
    }
    await edge.end('SIGTERM');
    expect(await host.world.leftovers()).toEqual([]);
    expect(host.rows('slots')).toBe(0);
  });
});
