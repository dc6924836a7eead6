/** Transfers that are broken off or attacked: what arrives is whole, or nothing, and never elsewhere. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, type Sandbox } from '@dsec/libdsec';
import { MIB } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { type Cli, cliOf, startProgram } from './cli-world.ts';
import { type ServerWorld, startServerWorld } from './server-world.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PYTHON = join(ROOT, '.venv/bin/python');
const LARGE_BYTES = 160 * MIB;
/** More than a client reads before it begins. */
const BEGUN_BYTES = 48 * MIB;

compileFirst(join(ROOT, 'packages/dsec'));

let root = '';
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'dsec-attacks-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('an apiserver that is killed', () => {
  let world: ServerWorld;
  let client: Client;
  let sandbox: Sandbox;
  let dsec: Cli;
  const large = Buffer.alloc(LARGE_BYTES, 'some bytes ');

  beforeAll(async () => {
    world = await startServerWorld({ backend: 'sim' });
    const { url, api_key: apiKey, environment } = world.variables;
    client = new Client({ url, apiKey });
    sandbox = await client.create({ environment });
    dsec = cliOf(world.state);
    writeFileSync(join(root, 'large'), large);
    await sandbox.files.write('/large', large);
  });
  afterAll(async () => {
    await client?.close();
    await world?.stop();
  });

  const killApiserver = () => {
    const pid = execFileSync('pgrep', ['-P', `${world.upPid}`, '-f', ' apiserver ']);
    process.kill(Number(pid), 'SIGKILL');
  };
  /** Kills it when so many bytes of a copy are there; false when the copy was done before. */
  const killDuring = async (pid: number | undefined, counter: 'rchar' | 'wchar') => {
    for (;;) {
      if (!existsSync(`/proc/${pid}/io`)) return false;
      const io = readFileSync(`/proc/${pid}/io`, 'utf8');
      if (Number(new RegExp(`^${counter}: (\\d+)$`, 'm').exec(io)?.[1]) > BEGUN_BYTES) break;
      await setTimeout(2);
    }
    killApiserver();
    return true;
  };

  it.each([
    ['to', 'rchar'],
    ['from', 'wchar'],
  ] as const)('ends no copy %s a sandbox', async (way, counter) => {
    const local = join(root, way === 'to' ? 'large' : 'back');
    const remote = `${sandbox.id}:/${way === 'to' ? 'given' : 'large'}`;
    const running = dsec.start([
      '--json',
      'cp',
      ...(way === 'to' ? [local, remote] : [remote, local]),
    ]);
    expect(await killDuring(running.child.pid, counter)).toBe(true);
    const { end, stdout, stderr } = await running.ended;
    expect({ end, stderr }).toEqual({ end: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ files: 1, bytes: LARGE_BYTES });
    if (way === 'from') expect(readFileSync(local).equals(large)).toBe(true);
    else expect(Buffer.from(await sandbox.files.read('/given')).equals(large)).toBe(true);
    expect(readdirSync(root).filter((name) => /part|dsec-/.test(name))).toEqual([]);
  });

  it('and stays away is `unavailable`, and leaves no part of a file', async () => {
    const { url, api_key: apiKey } = world.variables;
    const target = join(root, 'away');
    mkdirSync(target);
    const python = [
      'import sys, libdsec',
      'with libdsec.Client(sys.argv[1], sys.argv[2], timeout=2) as client:',
      '    files = client.get(sys.argv[3]).files',
      '    try: files.download("/large", sys.argv[4])',
      '    except libdsec.UnavailableError as error: print(error.code)',
    ].join('\n');
    for (const language of existsSync(PYTHON) ? ['typescript', 'python'] : ['typescript']) {
      const proxy = await startCut(String(url).slice('unix:'.length), BEGUN_BYTES);
      const local = join(target, language);
      if (language === 'python') {
        const args = [PYTHON, '-c', python, proxy.url, String(apiKey), sandbox.id, local];
        const env = { PYTHONPATH: join(ROOT, 'python') };
        const { stdout, stderr } = await startProgram(args, { env }).ended;
        expect({ stdout, stderr }).toEqual({ stdout: 'unavailable\n', stderr: '' });
      } else {
        await using cut = new Client({ url: proxy.url, apiKey: String(apiKey), timeout: 2 });
        const { files } = await cut.get(sandbox.id);
        const refused = expect.objectContaining({ code: 'unavailable' });
        await expect(files.download('/large', local)).rejects.toEqual(refused);
      }
      expect(proxy.isCut()).toBe(true);
      proxy.close();
      expect(readdirSync(target)).toEqual([]);
    }
  });

  it('takes no layer whose names lead out of it', async () => {
    const tree = join(root, 'tree');
    mkdirSync(join(tree, 'in'), { recursive: true });
    const outside = join(root, 'outside');
    writeFileSync(outside, 'mine');
    const kind = 'workspace';
    const tarOf = (name: string) => {
      const tar = join(root, 'names.tar');
      const transform = `s,.*,${name},`;
      execFileSync('tar', ['-P', '-cf', tar, `--transform=${transform}`, '-C', root, 'outside']);
      return tar;
    };
    for (const name of ['../evil', 'a/../../evil', '/../evil']) {
      const made = client.layers.importLayer(tarOf(name), kind, 'names', '1.0.0');
      await expect(made, name).rejects.toMatchObject({ code: 'import-invalid' });
    }
    // What is absolute lies below the root of the layer, as tar itself has it.
    const absolute = join(root, 'absolute');
    const made = await client.layers.importLayer(tarOf(absolute), kind, 'names', '1.0.1');
    expect(made.layerId).toMatch(/^sha256:/);
    for (const path of [absolute, join(root, 'evil'), join(root, '..', 'evil')]) {
      expect(existsSync(path)).toBe(false);
    }
    expect(readFileSync(outside, 'utf8')).toBe('mine');
  });
});

interface Cut {
  readonly url: string;
  isCut(): boolean;
  close(): void;
}

/** In front of a server: passes so many bytes of its answers on, and then is gone. */
async function startCut(socketPath: string, bytesMax: number): Promise<Cut> {
  const sockets = new Set<Socket>();
  let passed = 0;
  const path = join(root, `cut-${passed}.sock`);
  rmSync(path, { force: true });
  const server = createServer((near) => {
    const far = connect(socketPath);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket
        .on('error', () => {})
        .on('close', () => {
          near.destroy();
          far.destroy();
        });
    }
    near.pipe(far);
    far.on('data', (bytes) => {
      passed += bytes.length;
      if (passed > bytesMax) close();
      else if (!near.write(bytes)) far.pause();
    });
    near.on('drain', () => far.resume());
  });
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return { url: `unix:${path}`, isCut: () => passed > bytesMax, close };
}

const isRoot = process.getuid?.() === 0;

describe.skipIf(!isRoot)('a sandbox that swaps directories for links (needs root)', () => {
  it('gets nothing written outside of the target', { timeout: 120_000 }, async () => {
    const programs = ['ln', 'mkdir', 'mv', 'rm'];
    const world = await startServerWorld({ backend: 'container', base: { programs } });
    try {
      const { url, api_key: apiKey, layer } = world.variables;
      await using client = new Client({ url, apiKey });
      await using sandbox = await client.create({ layers: [String(layer)] });
      const place = join(root, 'swap');
      const target = join(place, 'a', 'b');
      mkdirSync(target, { recursive: true });
      const swap =
        'mkdir -p /d/x/y; echo f >/d/x/f; echo f >/d/x/y/f; cd /d; while :; do ' +
        'mv x z; ln -s ../../.. x; rm x; ln -s /etc x; rm x; ln -s y x; rm x; mv z x; done';
      const command = await sandbox.start(swap);
      while (!(await sandbox.files.exists('/d/x/y/f'))) await setTimeout(20);
      const cli = cliOf(world.state);
      const ends: (number | string)[] = [];
      for (let round = 0; round < 6; round += 1) {
        // Over what the rounds before have left as well.
        ends.push((await cli.run(['cp', `${sandbox.id}:/d`, target])).end);
      }
      await command.kill();
      expect(readdirSync(place)).toEqual(['a']);
      expect(readdirSync(join(place, 'a'))).toEqual(['b']);
      const left = readdirSync(target, { recursive: true }).map((name) =>
        join(target, String(name)),
      );
      expect(left.length).toBeGreaterThan(0);
      for (const path of left) {
        if (!lstatSync(path).isSymbolicLink()) continue;
        expect(existsSync(path) ? realpathSync(path) : `${target}/`).toMatch(`${target}/`);
      }
      // Some rounds go through, others meet a swap and say so.
      expect(ends.filter((end) => typeof end === 'number')).toHaveLength(ends.length);
    } finally {
      await world.stop();
    }
  });
});
