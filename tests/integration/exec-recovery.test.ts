import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { until } from './aether-peer.ts';
import { context, createTestSandboxes, outputOf, SANDBOX_ID, useExecWorld } from './exec-world.ts';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

describe('commands and edges that come and go', () => {
  const world = useExecWorld();

  test('a count runs through edges that die, and no byte is lost or doubled', async () => {
    const text = 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); echo $i; done';
    const first = world().edge;
    const { exec } = await first.execs.start(first.entry, { shell: text }, context());
    for (let round = 0; round < 8; round++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      const { sequence } = exec;
      const edge = world().restart();
      const shown = await edge.execs.get(edge.entry, exec.id as never, {}, context());
      expect(shown).toMatchObject({ id: exec.id, sequence });
    }
    const edge = world().edge;
    const all = await outputOf(edge, exec);
    const wanted = Array.from({ length: 60_000 }, (_, n) => `${n + 1}\n`).join('');
    expect(sha256(all)).toBe(sha256(Buffer.from(wanted)));
    const done = await edge.execs.get(edge.entry, exec.id as never, { waitMs: 20_000 }, context());
    expect(done).toMatchObject({ state: 'exited', exit: { exitCode: 0 } });
    expect(done.stdout.totalBytes).toBe(wanted.length);
  });

  test('an end that came while no edge was there is told', async () => {
    const before = world().edge;
    const { exec } = await before.execs.start(
      before.entry,
      { shell: 'sleep 0.2; echo late; exit 3' },
      context(),
    );
    before.close();
    await new Promise((resolve) => setTimeout(resolve, 500));
    const edge = world().restart();
    const done = await edge.execs.get(edge.entry, exec.id as never, { waitMs: 20_000 }, context());
    expect(done).toMatchObject({ state: 'exited', exit: { exitCode: 3 } });
    expect((await outputOf(edge, exec)).toString()).toBe('late\n');
    const again = world().restart();
    expect(again.execs.list(again.entry, { limit: 1000 }).execs.at(-1)).toEqual(done);
  });

  test('a shell that ended while no edge was there is told, and one that ends later', async () => {
    const before = world().edge;
    const { entry } = before;
    const early = await before.sessions.open(entry, {}, context('session-early'));
    const late = await before.sessions.open(entry, {}, context('session-late'));
    await before.run({ shell: '(sleep 0.1; kill -9 $$) &', session: early.id });
    before.close();
    await new Promise((resolve) => setTimeout(resolve, 300));
    const edge = world().restart();
    const isOpen = ({ id }: { id: string }) =>
      edge.sessions.list(edge.entry, {}).sessions.find((session) => session.id === id)?.open;
    expect([isOpen(early), isOpen(late)]).toEqual([true, true]);
    // As the recovery of sandboxes says it.
    edge.sandboxes.moveTo('running');
    await until(() => isOpen(early) === false, 'the early session is closed');
    await edge.run({ shell: '(sleep 0.1; kill -9 $$) &', session: late.id });
    await until(() => isOpen(late) === false, 'the late session is closed');
    expect(await edge.eventsOf('session-end')).toHaveLength(2);
  });

  test('a command whose row is older than its first frame is sent once', async () => {
    const edge = world().edge;
    const marker = join(world().root, 'once');
    const { exec } = await edge.run(`echo x >> ${marker}`);
    // As an edge leaves it that dies between the row and the frame.
    const id = 'ex-bbbbbbbbbbbbbbbb';
    edge.journal.db
      .prepare(
        `INSERT INTO execs (id, sandbox, generation, sequence, instance, spec, kept_bytes_max, started_at_ms)
         SELECT ?, sandbox, generation, sequence + 1000, instance, spec, kept_bytes_max, started_at_ms
         FROM execs WHERE id = ?`,
      )
      .run(id, exec.id);
    const after = world().restart();
    const done = await after.execs.get(after.entry, id as never, { waitMs: 20_000 }, context());
    expect(done).toMatchObject({ state: 'exited', exit: { exitCode: 0 } });
    expect(readFileSync(marker, 'utf8')).toBe('x\nx\n');
  });

  test('with another agent the result is unknown, never made up', async () => {
    const edge = world().edge;
    const { exec } = await edge.execs.start(edge.entry, { argv: ['sleep', '1'] }, context());
    edge.journal.db.prepare("UPDATE execs SET instance = 'other' WHERE id = ?").run(exec.id);
    const after = world().restart();
    const done = await after.execs.get(
      after.entry,
      exec.id as never,
      { waitMs: 20_000 },
      context(),
    );
    expect(done).toMatchObject({ state: 'unknown', error: { code: 'agent-lost' } });
    expect(done.exit).toBeUndefined();
  });

  test('stdin goes on where the agent took it', async () => {
    const edge = world().edge;
    const { exec } = await edge.execs.start(edge.entry, { argv: ['cat'], stdin: true }, context());
    const id = exec.id as never;
    const write = (at: typeof edge, offset: number, text: string, end = false) =>
      at.execs.writeStdin(at.entry, id, { offset, end }, once(text), context());
    await write(edge, 0, 'one ');
    const second = world().restart();
    // It waits: the sandbox is in use, by this edge as by the first.
    expect(second.sandboxes.touched.holds).toBe(1);
    expect(await write(second, 0, 'one two', true)).toEqual({ offset: 7 });
    const third = world().restart();
    expect(await write(third, 0, 'one two', true)).toMatchObject({ offset: 7 });
    const done = await third.execs.get(third.entry, id, { waitMs: 20_000 }, context());
    expect(done).toMatchObject({ state: 'exited', exit: { exitCode: 0 } });
    expect(third.sandboxes.touched.holds).toBe(0);
    expect((await outputOf(third, exec)).toString()).toBe('one two');
  });

  test('output beyond what is kept loses its middle, in the same way after a restart', async () => {
    const before = world().edge;
    const outputBytesMax = 1_000_000;
    const text = 'yes 0123456789abcde | head -c 6000000; sleep 0.3; echo; echo end';
    const { exec } = await before.execs.start(
      before.entry,
      { shell: text, outputBytesMax },
      context(),
    );
    const shown = () => before.execs.get(before.entry, exec.id as never, {}, context());
    await until(async () => (await shown()).stdout.totalBytes >= 6_000_000, 'the output');
    const edge = world().restart();
    const done = await edge.execs.get(edge.entry, exec.id as never, { waitMs: 20_000 }, context());
    const totalBytes = 6_000_000 + '\nend\n'.length;
    expect(done.stdout).toEqual({
      ...{ totalBytes, headBytes: 500_000, tailOffset: totalBytes - 500_000 },
      ...{ truncated: true, ended: true },
    });
    const wanted = Buffer.from(`${'0123456789abcde\n'.repeat(375_000)}\nend\n`);
    const read = async (offset: number) => {
      const query = { offset };
      const reply = await edge.readOutput(edge.entry, exec.id as never, query, context());
      const parts: Uint8Array[] = [];
      for await (const part of reply.body) parts.push(part);
      return { end: reply.end, bytes: Buffer.concat(parts) };
    };
    const head = await read(0);
    expect(head.end).toBe(false);
    expect(head.bytes.equals(wanted.subarray(0, 500_000))).toBe(true);
    const tail = await read(totalBytes - 500_000);
    expect(tail.end).toBe(true);
    expect(tail.bytes.equals(wanted.subarray(totalBytes - 500_000))).toBe(true);
    await expect(read(2_000_000)).rejects.toMatchObject({
      code: 'output-lost',
      details: { offset: totalBytes - 500_000 },
    });
  });

  test('the end of a sandbox makes its commands unknown, and forgetting it removes all', async () => {
    const sandboxes = createTestSandboxes();
    const edge = world().restart({ sandboxes });
    const { exec } = await edge.execs.start(edge.entry, { shell: 'echo kept; sleep 1' }, context());
    await until(async () => (await outputSoFar()).length > 0, 'the first output');
    sandboxes.entry.endReason = 'oom';
    sandboxes.moveTo('stopped');
    const done = await edge.execs.get(edge.entry, exec.id as never, {}, context());
    expect(done).toMatchObject({
      state: 'unknown',
      error: { code: 'agent-lost', details: { reason: 'oom' } },
    });
    expect((await outputSoFar()).toString()).toBe('kept\n');
    expect(readdirSync(join(world().root, 'spool'))).toEqual([SANDBOX_ID]);
    sandboxes.forget();
    expect(readdirSync(join(world().root, 'spool'))).toEqual([]);
    expect(() => edge.execs.list(edge.entry, {}).execs.length).not.toThrow();
    expect(edge.execs.list(edge.entry, {}).execs).toEqual([]);
    expect(edge.faults).toEqual([]);

    async function outputSoFar(): Promise<Buffer> {
      const reply = await edge.readOutput(edge.entry, exec.id as never, {}, context());
      const parts: Uint8Array[] = [];
      for await (const part of reply.body) parts.push(part);
      return Buffer.concat(parts);
    }
  });

  test('a paused sandbox keeps its commands, which go on with it', async () => {
    const sandboxes = createTestSandboxes();
    const edge = world().restart({ sandboxes });
    const { exec } = await edge.execs.start(edge.entry, { shell: 'sleep 0.3; echo on' }, context());
    const shown = () => edge.execs.get(edge.entry, exec.id as never, {}, context());
    await until(async () => (await shown()).state === 'running', 'the start');
    sandboxes.entry.state = 'paused';
    const link = await edge.agents.link(edge.entry.key);
    link.close();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect((await shown()).state).toBe('running');
    sandboxes.moveTo('running');
    const done = await edge.execs.get(edge.entry, exec.id as never, { waitMs: 9000 }, context());
    expect(done).toMatchObject({ state: 'exited', exit: { exitCode: 0 } });
  });

  test('strangers in the spool are removed', () => {
    const stranger = join(world().root, 'spool', 'stray');
    writeFileSync(stranger, '');
    world().restart();
    expect(readdirSync(join(world().root, 'spool'))).not.toContain('stray');
  });
});

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
