import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ERROR_CODES } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** The command as a person starts it: the built program, in a process of its own. */
const CLI = fileURLToPath(new URL('../../packages/dsec/dist/cli.js', import.meta.url));

describe('dsec', () => {
  let root = '';
  let state = '';

  const dsec = (args: readonly string[], input?: Buffer) => {
    const all = [CLI, '--state', state, ...args];
    const { status, stdout, stderr } = spawnSync(process.execPath, all, {
      input,
      encoding: 'utf8',
    });
    return { status, stdout, stderr };
  };
  const json = (...args: string[]) => JSON.parse(dsec(['--json', ...args]).stdout);
  const refsIn = (listed: { layers: { ref: string }[] }) => listed.layers.map(({ ref }) => ref);

  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'dsec-cli-'));
    state = join(root, 'state');
    mkdirSync(join(root, 'tree', 'bin'), { recursive: true });
    writeFileSync(join(root, 'tree', 'bin', 'tool'), 'x'.repeat(200_000));
  });

  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it('says what it can do', () => {
    const { status, stdout } = dsec(['--help']);
    expect(status).toBe(0);
    expect(stdout).toContain('doctor');
    expect(stdout).toContain('layer');
    expect(dsec(['nonsense']).status).toBe(2);
    expect(dsec(['layer', 'import', 'base/x:1.0.0']).status).toBe(2);
  });

  it('tells programs of a command line that it cannot read, and refuses filters that fit nothing', () => {
    const { status, stdout } = dsec(['--json', 'layer', 'import']);
    expect(status).toBe(2);
    expect(JSON.parse(stdout).error).toMatchObject({ code: 'invalid-argument' });
    for (const filter of ['base/a/b', 'base/..', 'base/']) {
      expect(dsec(['layer', 'ls', filter]).status).toBe(2);
    }
  });

  it('ends quietly when nobody reads on, and says so when its output has no room', () => {
    const run = (rest: string) =>
      spawnSync(
        'bash',
        ['-o', 'pipefail', '-c', `"$0" "$1" --state "$2" ${rest}`, process.execPath, CLI, state],
        {
          encoding: 'utf8',
        },
      );
    const gone = run('layer ls | true');
    expect({ status: gone.status, stderr: gone.stderr }).toEqual({ status: 141, stderr: '' });
    const full = run('layer ls >/dev/full');
    expect(full.status).toBe(ERROR_CODES['storage-full'].exitCode);
    expect(full.stderr).toMatch(/^dsec: storage-full/);
  });

  it('lists nothing on a new machine', () => {
    expect(json('layer', 'ls')).toEqual({ layers: [], problems: [] });
  });

  it('imports a directory, and the same content again as the same layer', () => {
    const first = json('layer', 'import', 'base/tools:1.0.0', join(root, 'tree'));
    const second = json('layer', 'import', 'base/tools:1.1.0', join(root, 'tree'));
    expect(second.layerId).toBe(first.layerId);
    expect(refsIn(json('layer', 'ls', 'base/tools'))).toEqual([
      'base/tools:1.1.0',
      'base/tools:1.0.0',
    ]);
    expect(json('layer', 'show', 'base/tools:^1').ref).toBe('base/tools:1.1.0');
  });

  it('imports a tar from standard input with the tree of the directory', () => {
    const tar = execFileSync('tar', ['--format=pax', '-cf', '-', '-C', join(root, 'tree'), '.']);
    const { status, stderr } = dsec(['layer', 'import', 'base/piped:1.0.0', '-'], tar);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const { layers } = json('layer', 'ls', 'base');
    const digests = layers.map((row: { treeDigest: string }) => row.treeDigest);
    expect(new Set(digests).size).toBe(1);
  });

  it('refuses to move a version, with the code for programs and the exit code of the table', () => {
    writeFileSync(join(root, 'other'), 'other');
    mkdirSync(join(root, 'other-tree'));
    const args = ['--json', 'layer', 'import', 'base/tools:1.0.0', join(root, 'other-tree')];
    const { status, stdout } = dsec(args);
    expect(status).toBe(ERROR_CODES['already-exists'].exitCode);
    expect(JSON.parse(stdout).error.code).toBe('already-exists');
  });

  it.each([
    ['base/../x:1.0.0', 'invalid-argument'],
    ['base/x:1', 'invalid-argument'],
    ['thing/x:1.0.0', 'invalid-argument'],
  ])('refuses the name %s', (ref, code) => {
    const { status, stdout } = dsec(['--json', 'layer', 'import', ref, join(root, 'tree')]);
    expect(JSON.parse(stdout).error.code).toBe(code);
    expect(status).toBe(2);
  });

  it('finds a flipped bit, and says so by exit code', async () => {
    expect(dsec(['layer', 'verify', 'base/tools:latest']).status).toBe(0);
    const blobs = join(state, 'store', 'blobs');
    const data = join(blobs, String(readdirSync(blobs)[0]), 'data');
    const file = await open(data, 'r+');
    await file.write(Buffer.from('y'), 0, 1, 1000);
    await file.close();
    const { status, stderr } = dsec(['layer', 'verify', 'base/tools:latest']);
    expect(status).toBe(ERROR_CODES['data-loss'].exitCode);
    expect(stderr).toContain('base/tools:1.1.0 is damaged');
  });

  it('goes on after a damaged layer, and repairs it when its content is imported again', () => {
    const [other, absent] = ['base/other:1.0.0', 'base/absent:1.0.0'];
    json('layer', 'import', other, join(root, 'other-tree'));
    const one = dsec(['layer', 'verify', 'base/tools:1.1.0', absent, other]);
    expect(one.status).toBe(ERROR_CODES['data-loss'].exitCode);
    expect(one.stdout).toContain(`${other}: `);
    expect(one.stderr).toContain(`no layer matches ${absent}`);
    const verified = json('layer', 'verify', 'base/tools:1.1.0', absent, other);
    expect(verified).toMatchObject({
      layers: [{ ref: other }],
      problems: [
        { ref: 'base/tools:1.1.0', code: 'data-loss' },
        { ref: absent, code: 'not-found' },
      ],
    });

    const { repaired } = json('layer', 'import', 'base/tools:1.2.0', join(root, 'tree'));
    expect(repaired).toEqual([expect.stringMatching(/^blobs\/[0-9a-f]{64}\/data$/)]);
    expect(dsec(['layer', 'verify', 'base/tools:1.1.0']).status).toBe(0);
  });

  it('lists what is whole beside what is damaged', () => {
    const { layers } = json('layer', 'ls');
    const ref = join(state, 'store', 'refs', 'base', 'tools', '1.2.0');
    chmodSync(ref, 0o644);
    writeFileSync(ref, 'not json');
    const { status, stdout, stderr } = dsec(['layer', 'ls']);
    expect(status).toBe(ERROR_CODES['data-loss'].exitCode);
    expect(stdout).toContain('base/tools:1.1.0');
    expect(stderr).toContain('base/tools:1.2.0 is damaged');
    const listed = json('layer', 'ls');
    expect(listed.layers).toHaveLength(layers.length - 1);
    expect(listed.problems).toEqual([
      expect.objectContaining({ ref: 'base/tools:1.2.0', code: 'data-loss' }),
    ]);
    expect(dsec(['layer', 'rm', 'base/tools:1.2.0']).status).toBe(0);
    expect(dsec(['layer', 'ls']).status).toBe(0);
  });

  it('keeps others out of its state, and refuses state that others may change', () => {
    const place = join(root, 'umask');
    const script = 'umask 000; exec "$0" "$@"';
    const argv = [process.execPath, CLI, '--state', place, '--json', 'layer', 'ls'];
    const run = () => spawnSync('sh', ['-c', script, ...argv], { encoding: 'utf8' });
    expect(run().status).toBe(0);
    for (const path of [place, join(place, 'store'), join(place, 'store', 'refs')]) {
      expect(statSync(path).mode & 0o022).toBe(0);
    }
    chmodSync(place, 0o777);
    const { status, stdout } = run();
    expect(status).toBe(ERROR_CODES['permission-denied'].exitCode);
    expect(JSON.parse(stdout).error.message).toContain('chmod');
  });

  it('waits for the writer of a FIFO, until somebody interrupts it', async () => {
    const fifo = join(root, 'fifo');
    execFileSync('mkfifo', [fifo]);
    const args = [CLI, '--state', state, 'layer', 'import', 'base/fifo:1.0.0', fifo];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    const stages = join(state, 'store', 'tmp');
    while (readdirSync(stages).length === 0 && child.exitCode === null) await setTimeout(10);
    child.kill('SIGINT');
    const [code] = await once(child, 'exit');
    expect(code).toBe(ERROR_CODES.cancelled.exitCode);

    const waiting = spawn(process.execPath, args, { stdio: 'ignore' });
    execFileSync('sh', ['-c', 'tar -cf "$1" -C "$0" .', join(root, 'tree'), fifo]);
    expect((await once(waiting, 'exit'))[0]).toBe(0);
  });

  it('removes a name and leaves the others', () => {
    expect(dsec(['layer', 'rm', 'base/tools:1.1.0']).status).toBe(0);
    expect(json('layer', 'show', 'base/tools:latest').ref).toBe('base/tools:1.0.0');
    expect(dsec(['layer', 'rm', 'base/tools:1.1.0']).status).toBe(
      ERROR_CODES['not-found'].exitCode,
    );
  });

  it('leaves no temporary file behind', () => {
    expect(readdirSync(join(state, 'store', 'tmp'))).toEqual([]);
  });
});
