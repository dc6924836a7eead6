import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentLink } from '@dsec/backend';
import { describe, expect, test } from 'vitest';
import { until } from './aether-peer.ts';
import { context, outputOf, SANDBOX_ID, useExecWorld } from './exec-world.ts';

describe('what is kept of commands is bounded', () => {
  const world = useExecWorld({ limits: { commandsMax: 5, sandboxBytesMax: 250_000 } });

  test('the oldest rows go, then the oldest output', async () => {
    const { edge, root } = world();
    const runs = [];
    for (let n = 0; n < 8; n++) runs.push(await edge.run('head -c 100000 /dev/zero; exit 3'));
    const listed = edge.execs.list(edge.entry, {}).execs;
    expect(listed.map(({ id }) => id)).toEqual(runs.slice(3).map(({ exec }) => exec.id));
    const first = listed[0];
    expect(first).toMatchObject({
      exit: { exitCode: 3 },
      stdout: { totalBytes: 100_000, headBytes: 0, tailOffset: 100_000, truncated: true },
    });
    await expect(outputOf(edge, first ?? { id: '' })).rejects.toMatchObject({
      code: 'output-lost',
      details: { offset: 100_000 },
    });
    expect((await outputOf(edge, runs[7]?.exec ?? { id: '' })).length).toBe(100_000);
    expect(readdirSync(join(root, 'spool', SANDBOX_ID)).length).toBeLessThanOrEqual(3);
    const after = world().restart();
    expect(after.execs.list(after.entry, {}).execs).toEqual(listed);
    await expect(after.execs.get(after.entry, runs[0]?.exec.id as never, {}, context()))
      .rejects //
      .toMatchObject({ code: 'not-found' });
  });
});

describe('commands and agents that are lost', () => {
  const world = useExecWorld({ reconnectMs: 300 });

  test('a link that breaks is made again, and no byte is lost', async () => {
    const { edge } = world();
    const text = 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i; done; cat; exit 5';
    const { exec } = await edge.execs.start(edge.entry, { shell: text, stdin: true }, context());
    const links = new Set<AgentLink>();
    for (let n = 0; n < 5; n++) {
      const link = await edge.agents.link(edge.entry.key);
      links.add(link);
      await new Promise((resolve) => setTimeout(resolve, 15));
      link.close();
      await link.closed;
    }
    expect(links.size).toBe(5);
    // A link that the edge closed itself is made again when somebody needs it.
    edge.sandboxes.moveTo('running');
    const empty = (async function* (): AsyncGenerator<Uint8Array> {})();
    await edge.execs.writeStdin(
      edge.entry,
      exec.id as never,
      { offset: 0, end: true },
      empty,
      context(),
    );
    const done = await edge.execs.get(edge.entry, exec.id as never, { waitMs: 20_000 }, context());
    expect(done).toMatchObject({ state: 'exited', exit: { exitCode: 5 } });
    const wanted = Array.from({ length: 20_000 }, (_, n) => `${n + 1}\n`).join('');
    expect((await outputOf(edge, exec)).toString()).toBe(wanted);
    expect(edge.faults).toEqual([]);
  });

  test('output that cannot be stored waits until it can', async () => {
    const { edge, root } = world();
    const directory = join(root, 'spool', SANDBOX_ID);
    rmSync(directory, { recursive: true, force: true });
    // In the place of the directory: every write fails.
    writeFileSync(directory, '');
    const { exec } = await edge.execs.start(
      edge.entry,
      { shell: 'head -c 3000000 /dev/zero; echo done' },
      context(),
    );
    await new Promise((resolve) => setTimeout(resolve, 400));
    const shown = () => edge.execs.get(edge.entry, exec.id as never, {}, context());
    expect(await shown()).toMatchObject({ state: 'running', stdout: { totalBytes: 0 } });
    rmSync(directory);
    const done = await edge.execs.get(edge.entry, exec.id as never, { waitMs: 20_000 }, context());
    expect(done).toMatchObject({ state: 'exited', stdout: { totalBytes: 3_000_005 } });
    expect((await outputOf(edge, exec)).subarray(-5).toString()).toBe('done\n');
    expect(existsSync(directory)).toBe(true);
  });

  test('an agent that is gone makes its commands unknown', async () => {
    const { edge, aether } = world();
    const { exec } = await edge.execs.start(
      edge.entry,
      { shell: 'echo before; sleep 60' },
      context(),
    );
    const shown = () => edge.execs.get(edge.entry, exec.id as never, {}, context());
    await until(async () => (await shown()).stdout.totalBytes === 7, 'the output');
    aether.process.kill('SIGKILL');
    const done = await edge.execs.get(edge.entry, exec.id as never, { waitMs: 20_000 }, context());
    expect(done).toMatchObject({ state: 'unknown', error: { code: 'agent-lost' } });
    expect(done.exit).toBeUndefined();
    expect((await outputOf(edge, exec)).toString()).toBe('before\n');
    expect(edge.faults).toContain('agent');
    await expect(edge.run('true')).rejects.toMatchObject({ code: 'agent-lost' });
  });
});
