/** Row 74 of the threats, for files and ports: an agent that has been taken over harms its own sandbox. */
import { HOSTILE_MODES } from '@dsec/backend/sim';
import { ROUTES } from '@dsec/protocol';
import { asDsecError, MIB, type SandboxId } from '@dsec/std';
import { expect, it } from 'vitest';
import { CREATE } from '../core-world.ts';
import { startEdge } from '../support/served-edge.ts';

const PATIENCE_MS = 1500;

async function* upload() {
  for (let i = 0; i < 64; i += 1) yield Buffer.alloc(64 * 1024);
}

it.each(HOSTILE_MODES.filter((mode) => mode !== 'wrong-welcome'))(
  '%s: every operation ends, the edge stays well',
  async (mode) => {
    const { baseUrl, clientOf } = await startEdge(mode);
    const client = clientOf('p');
    const rssBefore = process.memoryUsage().rss;
    const operations: ((sandboxId: SandboxId, signal: AbortSignal) => Promise<unknown>)[] = [
      (sandboxId, signal) =>
        client.call(ROUTES.statFile, { params: { sandboxId }, query: { path: '/x' } }, { signal }),
      (sandboxId, signal) =>
        client.call(ROUTES.listFiles, { params: { sandboxId }, query: { path: '/' } }, { signal }),
      (sandboxId, signal) =>
        client.call(
          ROUTES.writeFile,
          { params: { sandboxId }, query: { path: '/x' }, body: upload() },
          { signal },
        ),
      async (sandboxId, signal) => {
        const channel = await client.socket(ROUTES.connectPort, { sandboxId, port: 80 }, {});
        signal.addEventListener('abort', () => void channel.close(asDsecError(signal.reason)));
        const error = await channel.closed;
        if (error !== undefined) throw error;
      },
    ];
    const outcomes = await Promise.all(
      operations.map(async (operation) => {
        const { id } = await client.call(ROUTES.createSandbox, { body: CREATE });
        const params = { sandboxId: id as SandboxId };
        const code = await operation(params.sandboxId, AbortSignal.timeout(PATIENCE_MS)).then(
          () => 'done',
          (thrown) => asDsecError(thrown).code,
        );
        if (code !== 'protocol') return code;
        await until(
          async () => (await client.call(ROUTES.getSandbox, { params })).state === 'failed',
        );
        return (await client.call(ROUTES.getSandbox, { params })).endReason;
      }),
    );
    const told = mode === 'early-close' ? 'unavailable' : 'protocol';
    expect(outcomes.slice(0, 3)).toEqual([told, told, told]);
    // Whether a connection to a port has ended is the agent's word.
    expect([told, 'done']).toContain(outcomes[3]);
    const health = await fetch(`${baseUrl}/v1/health`);
    expect(await health.json()).toMatchObject({ ok: true });
    expect(process.memoryUsage().rss - rssBefore).toBeLessThan(256 * MIB);
  },
);

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 2));
}
