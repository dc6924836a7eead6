import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type Aether,
  type AetherLink,
  type CommandOptions,
  run,
  startAether,
  until,
} from './aether-peer.ts';

describe.each(['/bin/sh', '/bin/bash'])('sessions of %s', (shell) => {
  let aether: Aether;
  let link: AetherLink;
  let sessionId = '';
  let sessions = 0;
  beforeAll(async () => {
    aether = await startAether();
    link = await aether.connect();
  });
  afterAll(() => aether.stop());
  const open = async (more: object = {}) => {
    sessions += 1;
    sessionId = `session-${sessions}`;
    const answer = await link.ask('session-open', {
      sessionId,
      argv: [Buffer.from(shell)],
      env: [],
      ...more,
    });
    expect(answer.type).toBe('done');
  };
  beforeEach(() => open());
  const sh = (text: string, more: CommandOptions = {}) => run(link, text, { sessionId, ...more });

  test('directory, variables and functions live on', async () => {
    await sh('cd /usr/lib; word="a  b"; export out=1; f() { echo "f:$1"; }');
    const result = await sh('pwd; echo "$word"; f x; env | grep ^out=');
    expect(result.stdout.toString()).toBe('/usr/lib\na  b\nf:x\nout=1\n');
    expect([result.exitCode, result.trusted]).toEqual([0, false]);
  });

  test('each command has its own status and output', async () => {
    const results = [];
    for (const text of ['true', 'false', '(exit 42)', 'echo out; echo err >&2', 'no-such-thing']) {
      results.push(await sh(text));
    }
    expect(results.map((result) => result.exitCode)).toEqual([0, 1, 42, 0, 127]);
    expect(results[3]?.stdout.toString()).toBe('out\n');
    expect(results[3]?.stderr.toString()).toBe('err\n');
  });

  test('quotes, line ends and any other bytes', async () => {
    const result = await sh(`echo 'single' "double" \\$x
cat <<'END'
it's $HOME
END
echo last`);
    expect(result.stdout.toString()).toBe("single double $x\nit's $HOME\nlast\n");
    const words = ["it's", 'a\nb', '$HOME', '"', '', '\\'];
    const argv = ['printf', '<%s>', ...words].map((word) => Buffer.from(word));
    const printed = await run(link, { argv, sessionId });
    expect(printed.stdout.toString()).toBe(words.map((word) => `<${word}>`).join(''));
  });

  test('a text of the longest kind, full of quotes', async () => {
    const result = await sh(`: '${'"'.repeat(60_000)}' ${"''".repeat(30_000)}; echo whole`);
    expect(result.stdout.toString()).toBe('whole\n');
  });

  test('a mistake in the text does not end the session', async () => {
    const result = await sh('if then (');
    expect(result.exitCode).not.toBe(0);
    expect((await sh('echo alive')).stdout.toString()).toBe('alive\n');
  });

  test('a command cannot reach the status descriptor, nor forge an end by what it prints', async () => {
    const result = await sh(
      'ls /proc/self/fd; echo 00000000000000000000000000000000 0; echo x >&9; echo still',
    );
    expect(result.stdout.toString().split('\n').slice(0, 4)).toEqual(['0', '1', '2', '3']);
    expect(result.stdout.toString()).toContain('still\n');
  });

  test('input of one command; without, its end', async () => {
    expect((await sh('cat; echo end')).stdout.toString()).toBe('end\n');
    const result = await sh('read a; echo "got $a"', { input: 'one\n' });
    expect(result.stdout.toString()).toBe('got one\n');
  });

  test('a timeout ends the command, not the session', async () => {
    await sh('word=kept');
    const result = await sh('echo begun; sleep 60', { timeoutMs: 200 });
    expect([result.timedOut, result.stdout.toString()]).toEqual([true, 'begun\n']);
    expect((await sh('echo $word')).stdout.toString()).toBe('kept\n');
  });

  test('a shell that does not come back is ended by the timeout', async () => {
    const result = await sh('while :; do :; done', { timeoutMs: 100 });
    expect([result.timedOut, result.signal]).toEqual([true, 9]);
    await expect(sh('true')).rejects.toMatchObject({ code: 'not-found' });
  });

  test('exit ends the session with its status', async () => {
    expect((await sh('echo bye; exit 5')).exitCode).toBe(5);
    await expect(sh('true')).rejects.toMatchObject({ code: 'not-found' });
  });

  test('one command at a time', async () => {
    const first = sh('sleep 0.3');
    await expect(sh('true')).rejects.toMatchObject({ code: 'state-conflict' });
    expect((await first).exitCode).toBe(0);
  });

  test('a background process keeps neither the command nor the next one', async () => {
    await sh('sleep 1 & echo started');
    expect((await sh('echo next')).stdout.toString()).toBe('next\n');
  });

  test('outlives the connection, and ends when it is closed', async () => {
    await sh('word=kept');
    link.close();
    link = await aether.connect();
    expect((await sh('echo $word; sleep 60 & echo $!')).stdout.toString()).toMatch(/^kept\n\d+\n$/);
    await expect(link.ask('session-open', { sessionId, env: [] })).rejects.toMatchObject({
      code: 'already-exists',
    });
    expect((await link.ask('session-close', { sessionId })).type).toBe('done');
    await until(
      async () =>
        sh('true').then(
          () => false,
          () => true,
        ),
      'the session to be gone',
    );
  });

  test('on a terminal', async () => {
    await open({ pty: { rows: 24, columns: 80 } });
    const result = await sh('stty size; test -t 0 && echo terminal', { stdinOpen: true });
    expect(result.stdout.toString()).toBe('24 80\r\nterminal\r\n');
    expect((await sh('echo again')).stdout.toString()).toBe('again\r\n');
  });
});
