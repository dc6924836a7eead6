import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
    expect(json('layer', 'ls')).toEqual([]);
  });

  it('imports a directory, and the same content again as the same layer', () => {
    const first = json('layer', 'import', 'base/tools:1.0.0', join(root, 'tree'));
    const second = json('layer', 'import', 'base/tools:1.1.0', join(root, 'tree'));
    expect(second.layerId).toBe(first.layerId);
    expect(json('layer', 'ls', 'base/tools').map((row: { ref: string }) => row.ref)).toEqual([
      'base/tools:1.1.0',
      'base/tools:1.0.0',
    ]);
    expect(json('layer', 'show', 'base/tools:^1').ref).toBe('base/tools:1.1.0');
  });

  it('imports a tar from standard input with the tree of the directory', () => {
    const tar = execFileSync('tar', ['--format=pax', '-cf', '-', '-C', join(root, 'tree'), '.']);
    const { status, stderr } = dsec(['layer', 'import', 'base/piped:1.0.0', '-'], tar);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const digests = json('layer', 'ls', 'base').map(
      (row: { treeDigest: string }) => row.treeDigest,
    );
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
