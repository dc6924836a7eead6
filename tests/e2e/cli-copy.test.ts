/** `dsec cp`, on the simulated backend: trees, names that are any bytes, and links that lead nowhere good. */
import type { ChildProcess } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, type Sandbox } from '@dsec/libdsec';
import { ERROR_CODES } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { type Cli, cliOf } from './cli-world.ts';
import { type ServerWorld, startServerWorld } from './server-world.ts';

compileFirst(join(fileURLToPath(new URL('../../', import.meta.url)), 'packages/dsec'));

const ODD = Buffer.from([0x6f, 0x64, 0x64, 0xff, 0x0a]);
const LARGE_BYTES = 192 * 2 ** 20;
/** Node itself takes 90 MiB of it. */
const CLIENT_BYTES_MAX = 176 * 2 ** 20;

/** The most memory that a process has had, looked at until it ends. */
async function peakOf(pid: number): Promise<number> {
  let peak = 0;
  for (;;) {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      peak = Math.max(peak, 1024 * Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0));
    } catch {
      return peak;
    }
    await setTimeout(50);
    if (!existsSync(`/proc/${pid}`)) return peak;
  }
}

/** What a process has open, as far as it stays open while we look. */
function openFilesOf({ pid }: ChildProcess): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

let world: ServerWorld;
let client: Client;
let sandbox: Sandbox;
let dsec: Cli;
let root = '';
const at = (path: string) => `${sandbox.id}:${path}`;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'dsec-cp-'));
  world = await startServerWorld({ backend: 'sim' });
  const { url, api_key: apiKey } = world.variables as { url: string; api_key: string };
  client = new Client({ url, apiKey });
  sandbox = await client.create({ environment: 'example' });
  dsec = cliOf(world.state);
});
afterAll(async () => {
  await client?.close();
  await world?.stop();
  rmSync(root, { recursive: true, force: true });
});

describe('dsec cp', () => {
  it('copies a file into a directory or under a name, with its mode', async () => {
    writeFileSync(join(root, 'tool'), 'x'.repeat(1000), { mode: 0o750 });
    await sandbox.files.mkdir('/in');
    for (const target of ['/in', '/in/other']) {
      const told = await dsec.run(['cp', join(root, 'tool'), at(target)]);
      expect(told).toMatchObject({ end: 0, stdout: '' });
      expect(told.stderr).toContain('copied 1 file');
    }
    for (const name of ['tool', 'other']) {
      expect(await sandbox.files.stat(`/in/${name}`)).toMatchObject({
        mode: 0o750,
        sizeBytes: 1000,
      });
    }
    expect((await dsec.run(['cp', at('/in/tool'), join(root, 'back')])).end).toBe(0);
    expect(statSync(join(root, 'back')).mode & 0o777).toBe(0o750);
  });

  it('copies trees with any names there and back again', async () => {
    const tree = join(root, 'tree');
    mkdirSync(join(tree, 'a', 'empty'), { recursive: true });
    writeFileSync(join(tree, 'a', 'f'), 'one');
    writeFileSync(Buffer.concat([Buffer.from(`${tree}/a/`), ODD]), 'odd');
    symlinkSync('f', join(tree, 'a', 'link'));
    const up = await dsec.run(['--json', 'cp', tree, at('/up')]);
    expect(JSON.parse(up.stdout)).toEqual({
      files: 2,
      directories: 3,
      links: 0,
      skipped: 1,
      bytes: 6,
    });
    expect(up.stderr).toContain('left out /up/a/link');
    const down = await dsec.run(['--json', 'cp', at('/up'), root]);
    expect(JSON.parse(down.stdout)).toMatchObject({ files: 2, directories: 3, skipped: 0 });
    expect(readFileSync(Buffer.concat([Buffer.from(`${root}/up/a/`), ODD]), 'utf8')).toBe('odd');
    expect(statSync(join(root, 'up', 'a', 'empty')).isDirectory()).toBe(true);
  });

  it('takes standard streams, and dots', async () => {
    await dsec.run(['cp', '-', at('/streamed')], { input: 'from a pipe' });
    expect((await dsec.run(['cp', at('/streamed'), '-'])).stdout).toBe('from a pipe');
    mkdirSync(join(root, 'here'));
    writeFileSync(join(root, 'here', 'x'), '1');
    await dsec.run(['cp', '.', at('/dotted')], { cwd: join(root, 'here') });
    expect(await sandbox.files.readText('/dotted/x')).toBe('1');
  });

  it('copies a large file in memory that does not grow with it', async () => {
    const large = join(root, 'large');
    writeFileSync(large, Buffer.alloc(LARGE_BYTES, 'large'));
    for (const pair of [
      [large, at('/large')],
      [at('/large'), join(root, 'large2')],
    ] as const) {
      const running = dsec.start(['cp', ...pair]);
      const peak = peakOf(Number(running.child.pid));
      expect((await running.ended).end).toBe(0);
      expect(await peak).toBeLessThan(CLIENT_BYTES_MAX);
    }
    expect(readFileSync(join(root, 'large2')).equals(readFileSync(large))).toBe(true);
  });

  it('leaves nothing behind when it is killed while it downloads', async () => {
    const target = join(root, 'killed');
    mkdirSync(target);
    const running = dsec.start(['cp', at('/large'), target]);
    const isWriting = () =>
      openFilesOf(running.child).some((path) => path.startsWith(`${target}/`));
    while (!isWriting()) await setTimeout(5);
    running.child.kill('SIGKILL');
    expect((await running.ended).end).toBe('SIGKILL');
    expect(readdirSync(target)).toEqual([]);
    expect((await dsec.run(['cp', at('/large'), target])).end).toBe(0);
    expect(statSync(join(target, 'large')).size).toBe(LARGE_BYTES);
  });

  it('goes on after what is removed while it is copied', async () => {
    const names = Array.from({ length: 60 }, (_, n) => `d${n}`);
    for (const name of names) {
      await sandbox.files.write(`/moving/${name}/f`, name, { createParents: true });
    }
    const copies = dsec.run(['--json', 'cp', at('/moving'), join(root, 'moved')]);
    for (const name of names) await sandbox.files.remove(`/moving/${name}`, { recursive: true });
    const { end, stdout, stderr } = await copies;
    expect({ end, stderr: stderr.replace(/^.*it was removed meanwhile\n/gm, '') }).toEqual({
      ...{ end: 0, stderr: '' },
    });
    const { files, skipped } = JSON.parse(stdout);
    expect(files + skipped).toBeLessThanOrEqual(names.length);
  });

  it('lets no link lead out: neither one of the sandbox, nor one that is here already', async () => {
    const secret = join(root, 'secret');
    writeFileSync(secret, 'mine');
    await sandbox.files.mkdir('/hostile/sub', { createParents: true });
    await sandbox.files.write('/hostile/victim', 'theirs');
    await sandbox.files.write('/hostile/sub/f', 'theirs');
    const target = join(root, 'target');
    mkdirSync(join(target, 'hostile'), { recursive: true });
    // As an earlier copy, or somebody else, could have left them.
    symlinkSync(secret, join(target, 'hostile', 'victim'));
    symlinkSync(root, join(target, 'hostile', 'sub'));
    const told = await dsec.run(['cp', at('/hostile'), target]);
    expect(told.end).not.toBe(0);
    expect(readFileSync(secret, 'utf8')).toBe('mine');
    expect(existsSync(join(root, 'f'))).toBe(false);
    rmSync(join(target, 'hostile', 'sub'));
    expect((await dsec.run(['cp', at('/hostile'), target])).end).toBe(0);
    expect(readFileSync(secret, 'utf8')).toBe('mine');
    expect(lstatSync(join(target, 'hostile', 'victim')).isFile()).toBe(true);
  });

  it.each([
    ['two local paths', () => ['a', 'b'], 'invalid-argument'],
    ['two sandboxes', () => [at('/a'), at('/b')], 'invalid-argument'],
    ['a path that is not there', () => [at('/absent'), root], 'not-found'],
    ['a directory that is not there', () => [join(root, 'tool'), at('/absent/')], 'not-found'],
    ['a local file that is not there', () => [join(root, 'absent'), at('/in')], 'not-found'],
    [
      'a sandbox that is not there',
      () => ['sb-local-local-aaaaaaaaaaaaaaaa:/a', root],
      'not-found',
    ],
  ] as const)('refuses %s', async (_what, args, code) => {
    expect((await dsec.run(['cp', ...args()])).end).toBe(ERROR_CODES[code].exitCode);
  });
});

describe('links of a sandbox (needs root)', () => {
  it.skipIf(process.getuid?.() !== 0)('are copied when they stay below (needs root)', async () => {
    const real = await startServerWorld({
      backend: 'container',
      base: { programs: ['ln', 'mkdir'] },
    });
    try {
      const cli = cliOf(real.state);
      const made = (await cli.run(['run', '--env', 'example', '--keep'])).stdout.trim();
      const script =
        'mkdir -p /d/sub; echo x > /d/f; ln -s f /d/good; ln -s ../f /d/sub/good; ' +
        'ln -s /etc/passwd /d/bad; ln -s ../../x /d/sub/bad; ln -s sub/../.. /d/worse; exit 0';
      expect((await cli.run(['exec', made, '--', 'sh', '-c', script])).end).toBe(0);
      const told = await cli.run(['cp', `${made}:/d`, root]);
      expect(told.end).toBe(0);
      expect(told.stderr.match(/left out/g)).toHaveLength(3);
      expect(readlinkSync(join(root, 'd', 'good'))).toBe('f');
      expect(readFileSync(join(root, 'd', 'sub', 'good'), 'utf8')).toBe('x\n');
      for (const path of ['bad', 'sub/bad', 'worse']) {
        expect(lstatSync(join(root, 'd', path), { throwIfNoEntry: false })).toBeUndefined();
      }
      await cli.run(['stop', made]);
    } finally {
      await real.stop();
    }
  });
});
