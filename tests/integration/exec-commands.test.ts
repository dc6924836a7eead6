import { describe, expect, test } from 'vitest';
import { until } from './aether-peer.ts';
import { context, outputOf, useExecWorld } from './exec-world.ts';

describe('commands through the edge', () => {
  const world = useExecWorld();
  const edge = () => world().edge;

  test('exit codes and signals', async () => {
    for (const code of [0, 1, 7, 127, 255]) {
      const { exec } = await edge().run(`exit ${code}`);
      expect(exec).toMatchObject({ state: 'exited', exit: { exitCode: code, trusted: true } });
    }
    for (const signal of [1, 9, 15]) {
      const { exec } = await edge().run(`kill -${signal} $$; sleep 5`);
      expect(exec).toMatchObject({ state: 'exited', exit: { signal, oomKilled: false } });
    }
  });

  test('output comes with the answer', async () => {
    const { exec, stdout, stderr } = await edge().run('echo out; echo err >&2');
    expect(stdout).toEqual({ offset: 0, text: 'out\n' });
    expect(stderr).toEqual({ offset: 0, text: 'err\n' });
    expect(exec.stdout).toMatchObject({ totalBytes: 4, truncated: false, ended: true });
    expect(await outputOf(edge(), exec, 'stderr')).toEqual(Buffer.from('err\n'));
    const binary = await edge().run(['printf', '\\377\\000x']);
    expect(binary.stdout?.base64).toBe('/wB4');
  });

  test('a command that cannot run has failed, and says why', async () => {
    const missing = await edge().run(['/no/such/program']);
    expect(missing.exec).toMatchObject({ state: 'failed', error: { code: 'command-not-found' } });
    expect(missing.exec.exit).toBeUndefined();
    await expect(edge().run({})).rejects.toMatchObject({ code: 'invalid-argument' });
    await expect(edge().run({ argv: ['a'], shell: 'b' })).rejects.toMatchObject({
      code: 'invalid-argument',
    });
    const cwd = await edge().run({ argv: ['true'], cwd: '/no/such/directory' });
    expect(cwd.exec.state).toBe('failed');
  });

  test('defaults of the sandbox, and what the request says', async () => {
    const { stdout } = await edge().run({
      ...{ shell: 'pwd; echo $HOME $MORE', cwd: '/usr', env: { MORE: 'more' } },
    });
    expect(stdout?.text).toBe('/usr\n/ more\n');
  });

  test('a repeated key starts nothing again', async () => {
    const { execs, entry } = edge();
    const spec = { shell: 'echo once', waitMs: 10_000 };
    const [first, second] = await Promise.all([
      execs.start(entry, spec, context('key-1')),
      execs.start(entry, spec, context('key-1')),
    ]);
    const third = await execs.start(entry, spec, context('key-1'));
    expect(second?.exec.id).toBe(first?.exec.id);
    expect(third).toEqual(first);
  });

  test('stdin by offset: a repetition writes nothing twice', async () => {
    const { execs, entry } = edge();
    const { exec } = await execs.start(entry, { argv: ['cat'], stdin: true }, context());
    const id = exec.id as never;
    const write = (offset: number, text: string, end = false) =>
      execs.writeStdin(entry, id, { offset, end }, piecesOf(text), context());
    expect(await write(0, 'hello ')).toEqual({ offset: 6 });
    expect(await write(0, 'hello wor')).toEqual({ offset: 9 });
    await expect(write(20, 'x')).rejects.toMatchObject({
      code: 'conflict',
      details: { offset: 9 },
    });
    expect(await write(9, 'ld', true)).toEqual({ offset: 11 });
    const done = await execs.get(entry, id, { waitMs: 10_000 }, context());
    expect(done).toMatchObject({ state: 'exited', exit: { exitCode: 0 } });
    expect((await outputOf(edge(), exec)).toString()).toBe('hello world');
  });

  test('the input of a command that has read enough may be ended late; more is refused', async () => {
    const { execs, entry } = edge();
    const spec = { shell: 'read line; echo "$line"', stdin: true };
    const { exec } = await execs.start(entry, spec, context());
    const id = exec.id as never;
    const write = (offset: number, text: string, end = false) =>
      execs.writeStdin(entry, id, { offset, end }, piecesOf(text), context());
    await write(0, 'enough\n');
    await execs.get(entry, id, { waitMs: 10_000 }, context());
    expect(await write(7, '', true)).toEqual({ offset: 7 });
    await expect(write(7, 'more', true)).rejects.toMatchObject({ code: 'state-conflict' });
    expect((await outputOf(edge(), exec)).toString()).toBe('enough\n');
    const deaf = await execs.start(entry, { argv: ['true'] }, context());
    await execs.get(entry, deaf.exec.id as never, { waitMs: 10_000 }, context());
    const end = { offset: 0, end: true };
    await expect(
      execs.writeStdin(entry, deaf.exec.id as never, end, piecesOf(''), context()),
    ).rejects.toMatchObject({ code: 'state-conflict' });
  });

  test('signals, timeouts and terminals', async () => {
    const { execs, entry } = edge();
    const start = (spec: object) => execs.start(entry, spec, context());
    const sleeping = await start({ argv: ['sleep', '60'] });
    await execs.signal(entry, sleeping.exec.id as never, { signal: 15 }, context());
    const stopped = await execs.get(entry, sleeping.exec.id as never, { waitMs: 9000 }, context());
    expect(stopped.exit).toMatchObject({ signal: 15, timedOut: false });

    const slow = await edge().run({ shell: 'echo partial; sleep 60', timeoutMs: 100 });
    expect(slow.exec.exit).toMatchObject({ timedOut: true });
    expect(slow.stdout?.text).toBe('partial\n');

    const terminal = await start({
      shell: 'stty size; read x; stty size',
      pty: { rows: 10, columns: 20 },
    });
    const id = terminal.exec.id as never;
    await execs.resize(entry, id, { rows: 30, columns: 40 }, context());
    await execs.writeStdin(entry, id, { offset: 0 }, piecesOf('\n'), context());
    await execs.get(entry, id, { waitMs: 9000 }, context());
    expect((await outputOf(edge(), terminal.exec)).toString()).toMatch(/30 40/);
    await expect(execs.resize(entry, id, { rows: 1, columns: 1 }, context())).rejects.toMatchObject(
      {
        code: 'state-conflict',
      },
    );
  });

  test('200 commands at a time', async () => {
    const runs = Array.from({ length: 200 }, (_, n) => edge().run(`echo ${n}; exit ${n % 100}`));
    const results = await Promise.all(runs);
    for (const [n, { exec, stdout }] of results.entries()) {
      expect(exec.exit?.exitCode).toBe(n % 100);
      expect(stdout?.text).toBe(`${n}\n`);
    }
    const sequences = results.map(({ exec }) => exec.sequence);
    expect(new Set(sequences).size).toBe(200);
    expect(edge().activeCount(edge().entry.id)).toBe(0);
  });

  test('lists in the order of start, by pages', async () => {
    const { execs, entry } = edge();
    const first = execs.list(entry, { limit: 3 });
    const second = execs.list(entry, { limit: 3, cursor: first.cursor ?? '' });
    const sequences = [...first.execs, ...second.execs].map(({ sequence }) => sequence);
    expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
    expect(new Set(sequences).size).toBe(6);
    expect(() => execs.list(entry, { cursor: 'x' })).toThrow('cursor');
  });

  test('sessions keep directory and variables, and are not trusted', async () => {
    const { sessions, entry } = edge();
    const session = await sessions.open(entry, {}, context('session-1'));
    const again = await sessions.open(entry, {}, context('session-1'));
    expect(again.id).toBe(session.id);
    await edge().run({ shell: 'cd /usr; X=1', session: session.id });
    const { exec, stdout } = await edge().run({
      shell: 'pwd; echo $X; false',
      session: session.id,
    });
    expect(stdout?.text).toBe('/usr\n1\n');
    expect(exec.exit).toMatchObject({ exitCode: 1, trusted: false });
    expect(sessions.list(entry, {}).sessions).toEqual([{ ...session, open: true }]);
    await sessions.close(entry, session.id, context());
    await sessions.close(entry, session.id, context());
    expect(sessions.list(entry, {}).sessions[0]?.open).toBe(false);
    await expect(edge().run({ shell: 'true', session: session.id })).rejects.toMatchObject({
      code: 'not-found',
    });
  });

  test('a session whose shell is killed is closed', async () => {
    const { sessions, entry } = edge();
    const session = await sessions.open(entry, {}, context('session-2'));
    const { exec } = await edge().run({ shell: 'kill -9 $$', session: session.id });
    expect(exec.exit).toMatchObject({ signal: 9, oomKilled: false });
    expect(sessions.list(entry, {}).sessions.at(-1)).toEqual({ ...session, open: false });
  });

  test('a shell that ends while nobody uses it is told, once', async () => {
    const { sessions, entry } = edge();
    const session = await sessions.open(entry, {}, context('session-3'));
    const isOpen = () => sessions.list(entry, {}).sessions.at(-1)?.open;
    await edge().run({ shell: '(sleep 0.1; kill -9 $$) &', session: session.id });
    expect(isOpen()).toBe(true);
    await until(() => isOpen() === false, 'the session is closed');
    await sessions.close(entry, session.id, context());
    const ends = await edge().eventsOf('session-end');
    const mine = ends.filter((event) => 'session' in event && event.session === session.id);
    expect(mine).toEqual([expect.objectContaining({ sandbox: entry.id, type: 'session-end' })]);
  });

  test('nothing starts in the grace time', async () => {
    edge().entry.inGrace = true;
    await expect(edge().run('true')).rejects.toMatchObject({ code: 'state-conflict' });
    edge().entry.inGrace = false;
  });
});

async function* piecesOf(text: string): AsyncGenerator<Uint8Array> {
  if (text !== '') yield Buffer.from(text);
}
