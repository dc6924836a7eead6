/** `dsec run`, `exec` and what looks at sandboxes, on the simulated backend. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ERROR_CODES } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { type Cli, cliOf, type Ended, startProgram } from './cli-world.ts';
import { CLI, type ServerWorld, startServerWorld } from './server-world.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const ENVIRONMENT = ['--env', 'example'];

compileFirst(join(ROOT, 'packages/dsec'));

let world: ServerWorld;
let dsec: Cli;
beforeAll(async () => {
  world = await startServerWorld({ backend: 'sim' });
  dsec = cliOf(world.state);
});
afterAll(() => world?.stop());

const ids = async () => (await dsec.run(['ps', '--quiet'])).stdout.split('\n').filter(Boolean);
const make = async () => (await dsec.run(['run', ...ENVIRONMENT, '--keep'])).stdout.trim();
const until = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 10_000, interval: 100 });

describe('dsec run', () => {
  it('passes on output, exit code and signal, and leaves no sandbox', async () => {
    const told = await dsec.run(['run', ...ENVIRONMENT, '--', 'echo', 'hi', '--json']);
    expect(told).toEqual({ end: 0, stdout: 'hi --json\n', stderr: '' });
    expect((await dsec.run(['run', ...ENVIRONMENT, 'exit', '7'])).end).toBe(7);
    expect((await dsec.run(['run', ...ENVIRONMENT, '--', 'kill-self', '9'])).end).toBe(137);
    const odd = await dsec.run(['run', ...ENVIRONMENT, '--', 'no-such-program']);
    expect(odd.end).toBe(ERROR_CODES['command-not-found'].exitCode);
    expect(await ids()).toEqual([]);
  });

  it('tells programs all of it in one document', async () => {
    const told = await dsec.json('run', ...ENVIRONMENT, '--', 'echo', 'hi');
    expect(told).toMatchObject({ exitCode: 0, stdout: 'hi\n', stderr: '', timedOut: false });
    const ended = await dsec.run(['--json', 'run', ...ENVIRONMENT, '--', 'exit', '3']);
    expect(ended.end).toBe(3);
    expect(JSON.parse(ended.stdout)).toMatchObject({ exitCode: 3 });
  });

  it('refuses what makes no sense, and says what is there', async () => {
    for (const args of [
      ['run', '--', 'x'],
      ['run', ...ENVIRONMENT],
      ['run', '--env', 'x', '-l', 'y', 'z'],
    ]) {
      expect((await dsec.run(args)).end).toBe(2);
    }
    const none = await dsec.run(['run', '--env', 'absent', '--', 'true']);
    expect(none.end).toBe(ERROR_CODES['not-found'].exitCode);
  });

  it('stops its sandbox on Ctrl-C', async () => {
    const running = dsec.start(['run', ...ENVIRONMENT, '--', 'sleep', '3600000']);
    await until(async () => expect(await ids()).toHaveLength(1));
    running.child.kill('SIGINT');
    expect((await running.ended).end).toBe(ERROR_CODES.cancelled.exitCode);
    expect(await ids()).toEqual([]);
  });

  it('ends like a shell when nobody reads its output, and stops its sandbox', async () => {
    const line = `"$0" "$1" --state "$2" run --env example -- yes 50000000 | head -c 5`;
    const argv = ['bash', '-o', 'pipefail', '-c', line, process.execPath, CLI, world.state];
    expect(await startProgram(argv, {}).ended).toMatchObject({ end: 141, stdout: 'xxxxx' });
    await until(async () => expect(await ids()).toEqual([]));
  });

  it('runs many at once, tells each, and ends with the code of one that failed', async () => {
    const many = ['run', ...ENVIRONMENT, '--count', '8', '--'];
    const good = await dsec.run([...many, 'echo', 'from\u001b[31m']);
    expect(good.end).toBe(0);
    expect(good.stdout.split('\n').sort().at(1)).toBe('0: from\\u{1b}[31m');
    expect(good.stderr).toContain('8 of 8 exited with 0');
    const told = await dsec.run(['--json', ...many, 'exit', '5']);
    expect(told.end).toBe(5);
    const lines = told.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ index }) => index).sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(await ids()).toEqual([]);
  });
});

describe('dsec exec', () => {
  let id = '';
  beforeAll(async () => {
    id = await make();
  });
  afterAll(() => dsec.run(['stop', id]));

  it('passes bytes as they are, in and out', async () => {
    const input = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i & 0x7f));
    const { end, stdout } = await dsec.run(['exec', id, '--', 'cat'], { input });
    expect(end).toBe(0);
    expect(Buffer.from(stdout).equals(input)).toBe(true);
    const told = await dsec.run(['exec', id, '--', 'stderr', '\u001b[1mbold']);
    expect(told).toMatchObject({ end: 0, stdout: '', stderr: '\u001b[1mbold\n' });
  });

  it('does not wait for its standard input', async () => {
    const running = dsec.start(['exec', id, '--', 'echo', 'hi'], { open: true });
    expect(await running.ended).toMatchObject({ end: 0, stdout: 'hi\n' });
  });

  it('gives the first Ctrl-C to the command, and leaves at the second', async () => {
    const one = dsec.start(['exec', id, '--', 'cat'], { open: true });
    one.child.stdin?.write('ready\n');
    await one.said('ready\n');
    one.child.kill('SIGINT');
    expect((await one.ended).end).toBe(130);
    const deaf = dsec.start(['exec', id, '--', 'tree', '0', '3600000']);
    await deaf.said('grown');
    deaf.child.kill('SIGINT');
    deaf.child.kill('SIGTERM');
    const { end, stderr } = await deaf.ended;
    expect(end).toBe(ERROR_CODES.cancelled.exitCode);
    expect(stderr).toMatch(/runs on: dsec logs sb-\S+ ex-\S+/);
  });

  it('ends a command in time, in its own directory and with its own variables', async () => {
    const late = await dsec.run(['exec', '--timeout', '200ms', id, '--', 'sleep', '3600000']);
    expect(late.end).toBe(137);
    expect(late.stderr).toContain('its time was up');
    const where = await dsec.run(['exec', '-w', '/tmp', id, '--', 'pwd']);
    expect(where.stdout).toBe('/tmp\n');
    const env = await dsec.run(['exec', '-v', 'A=b=c', id, '--', 'env']);
    expect(env.stdout).toContain('A=b=c\n');
  });

  it('gives a command our terminal, and restores it', async () => {
    // The shell around it sees the terminal before and after.
    const line = `stty -g; "$0" "$1" --state "$2" exec -t ${id} -- size; echo "end $?"; stty -g`;
    const argv = [process.execPath, CLI, world.state].map((word) => `'${word}'`).join(' ');
    const command = `stty rows 31 columns 77; sh -c '${line}' ${argv}`;
    const running = startProgram(['script', '-qec', command, '/dev/null'], { open: true });
    await running.said('31 77');
    running.child.stdin?.write('\u007e.');
    const { stdout } = await running.ended;
    const lines = stdout.split(/\r*\n/);
    expect(stdout).toContain(`end ${ERROR_CODES.cancelled.exitCode}`);
    expect(lines.at(-2)).toBe(lines[0]);
  });

  it('refuses a terminal where there is none', async () => {
    expect((await dsec.run(['exec', '-t', id, '--', 'size'])).end).toBe(2);
    expect((await dsec.run(['shell', id])).end).toBe(2);
  });

  it('leaves a command behind, whose output logs prints', async () => {
    const left = await dsec.run(['exec', '--detach', id, '--', 'echo', 'later']);
    const exec = left.stdout.trim();
    expect(exec).toMatch(/^ex-/);
    await until(async () => expect((await dsec.run(['logs', id, exec])).stdout).toBe('later\n'));
    expect((await dsec.run(['logs', id])).stdout).toBe('later\n');
    expect((await dsec.run(['logs', '--list', id])).stdout).toContain(exec);
  });
});

describe('what looks at sandboxes', () => {
  it('lists and shows them, with everything of theirs escaped', async () => {
    const made = await dsec.run([
      'run',
      ...ENVIRONMENT,
      '--keep',
      '--job',
      'j-1',
      '--label',
      'a=b',
    ]);
    const id = made.stdout.trim();
    await dsec.run(['exec', id, '--', 'echo', '\u001b]0;title\u0007']);
    expect((await dsec.run(['ps', '--job', 'j-1'])).stdout).toMatch(
      /^SANDBOX .*\nsb-\S+ +running +example +j-1/,
    );
    expect((await dsec.run(['ps', '--label', 'a=c'])).stdout).not.toContain(id);
    const { stdout } = await dsec.run(['show', id]);
    expect(stdout).toContain('a=b');
    expect(stdout).toContain('echo \\u{1b}]0;title\\u{7}');
    expect(await dsec.json('show', id)).toMatchObject({ id, state: 'running' });
    expect(
      (await dsec.json<{ sandboxes: unknown[] }>('ps', '--job', 'j-1')).sandboxes,
    ).toHaveLength(1);
    expect((await dsec.run(['stop', '--job', 'j-1'])).stdout).toContain('stopped 1 of 1');
    expect((await dsec.run(['ps', '--all', '--only', 'stopped'])).stdout).toContain(id);
  });

  it('stops several, and tells of one that is not there', async () => {
    const [one, two] = [await make(), await make()];
    const gone = 'sb-local-local-aaaaaaaaaaaaaaaa';
    const told = await dsec.run(['stop', one, gone, two]);
    expect(told.end).toBe(ERROR_CODES['not-found'].exitCode);
    expect(told.stdout.split('\n').filter(Boolean).sort()).toEqual([one, two].sort());
    expect(told.stderr).toContain(gone);
  });

  it('follows events until it is interrupted', async () => {
    const running = dsec.start(['events', '--json', '--type', 'sandbox-state']);
    const id = await make();
    await dsec.run(['stop', id]);
    await running.said('"state":"stopped"');
    running.child.kill('SIGINT');
    const { end, stdout } = await running.ended;
    expect(end).toBe(0);
    const states = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(states.at(-1)).toMatchObject({ sandbox: id, state: 'stopped' });
  });
});

describe('environments and keys', () => {
  it('makes, lists, shows and removes environments', async () => {
    const layer = 'base/small:1.0.0';
    expect((await dsec.run(['env', 'create', 'mine', layer])).end).toBe(0);
    const again = await dsec.run(['env', 'create', 'mine', layer]);
    expect(again.end).toBe(ERROR_CODES['already-exists'].exitCode);
    expect(again.stderr).toMatch(/there is an environment mine already\n.*--replace/);
    expect((await dsec.run(['env', 'create', '--replace', 'mine', 'base/small:latest'])).end).toBe(
      0,
    );
    expect((await dsec.run(['env', 'ls'])).stdout).toMatch(/^mine +base\/small:latest/m);
    expect(await dsec.json('env', 'show', 'mine')).toMatchObject({ layers: ['base/small:latest'] });
    expect((await dsec.run(['env', 'rm', 'mine'])).end).toBe(0);
    for (const command of ['show', 'rm']) {
      const gone = await dsec.run(['env', command, 'mine']);
      expect(gone.end).toBe(ERROR_CODES['not-found'].exitCode);
      expect(gone.stderr).toMatch(/there is no environment mine .*\n.*env ls/);
    }
  });

  it('makes no environment of a layer that there is none of', async () => {
    const { end, stderr } = await dsec.run(['env', 'create', 'none', 'base/absent:^1']);
    expect(end).toBe(ERROR_CODES['not-found'].exitCode);
    expect(stderr).toMatch(/no layer matches base\/absent:\^1.*\n.*Import the layer first/);
    const known = await dsec.run(['env', 'create', 'none', 'base/small:^7']);
    expect(known.stderr).toContain('versions of base/small: 1.0.0');
    expect((await dsec.run(['env', 'show', 'none'])).end).toBe(ERROR_CODES['not-found'].exitCode);
  });

  it('shows, lists and removes the layers of a server that is named', async () => {
    const server = {
      DSEC_URL: String(world.variables.url),
      DSEC_API_KEY: String(world.variables.api_key),
      DSEC_STATE: join(world.state, 'nothing-here'),
    };
    const remote = (...args: string[]) =>
      startProgram([process.execPath, CLI, ...args], { env: server }).ended;
    const doc = async (...args: string[]) => JSON.parse((await remote('--json', ...args)).stdout);

    const source = join(world.state, 'tree');
    await dsec.run(['layer', 'import', 'toolkit/over-api:1.0.0', source]);
    const local = await dsec.json<{ layerId: string }>('layer', 'show', 'toolkit/over-api:^1');
    const shown = await doc('layer', 'show', 'toolkit/over-api:^1');
    expect(local).toMatchObject(shown);
    expect((await remote('layer', 'ls', 'toolkit')).stdout).toMatch(/^toolkit\/over-api:1\.0\.0 /m);
    const { layers, problems } = await doc('layer', 'ls');
    expect(layers.map(({ ref }: { ref: string }) => ref)).toEqual([
      ...['base/small:1.0.0', 'toolkit/over-api:1.0.0'],
    ]);
    expect(problems).toEqual([]);
    expect(await doc('layer', 'rm', 'toolkit/over-api:1.0.0')).toEqual({
      removed: 'toolkit/over-api:1.0.0',
    });
    for (const run of [remote, (...args: string[]) => dsec.run(args)]) {
      const gone = await run('layer', 'rm', 'toolkit/over-api:1.0.0');
      expect(gone.end).toBe(ERROR_CODES['not-found'].exitCode);
      expect(gone.stderr).toMatch(/toolkit\/over-api:1\.0\.0/);
      expect(gone.stderr).not.toContain('ENOENT');
    }
  });

  it('makes a key that works until it is revoked', async () => {
    const { key, secret } = await dsec.json<{ key: { id: string }; secret: string }>(
      ...['key', 'create', 'viewer', '--scope', 'sandboxes:read', '--expires', '1h'],
    );
    expect(secret).toMatch(/^dsec_/);
    const { url } = world.variables;
    const env = { DSEC_URL: String(url), DSEC_API_KEY: secret };
    /** Ends so; what it says otherwise is told. */
    const ends = async (running: Promise<Ended>, exitCode: number) => {
      const { end, stdout, stderr } = await running;
      expect(end, `${stdout}${stderr}`).toBe(exitCode);
    };
    const plain = (...args: string[]) =>
      startProgram([process.execPath, CLI, ...args], { env }).ended;
    await ends(plain('ps'), 0);
    const refused = plain('run', ...ENVIRONMENT, '--', 'true');
    await ends(refused, ERROR_CODES['permission-denied'].exitCode);
    expect((await dsec.run(['key', 'ls'])).stdout).toMatch(/viewer .* valid until/);
    await ends(dsec.run(['key', 'revoke', key.id]), 0);
    await ends(plain('ps'), ERROR_CODES.unauthenticated.exitCode);
    expect((await dsec.run(['key', 'ls'])).stdout).toMatch(/viewer .* revoked/);
  });

  it('says how to get a server when there is none, or no key for it', async () => {
    const ask = (env: Record<string, string>) =>
      startProgram([process.execPath, CLI, 'ps'], { env: { HOME: '/nonexistent', ...env } }).ended;
    const keyless = await ask({ DSEC_URL: 'http://127.0.0.1:1', DSEC_API_KEY: '' });
    expect(keyless.end).toBe(ERROR_CODES.unauthenticated.exitCode);
    expect(keyless.stderr).toContain('DSEC_API_KEY');
    const absent = await ask({ DSEC_URL: 'http://127.0.0.1:1', DSEC_API_KEY: 'dsec_x' });
    expect(absent.end).toBe(ERROR_CODES.unavailable.exitCode);
    expect(absent.stderr).toContain('dsec up');
  });
});
