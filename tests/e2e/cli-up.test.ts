/** `dsec up`: what it starts, what becomes of it when parts of it are killed, and who else may run. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ERROR_CODES } from '@dsec/std';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import {
  type BackendWorld,
  openBackendWorld,
  openSharedStore,
  type SharedStore,
} from '../integration/backend-container-world.ts';
import { type Cli, cliOf, type Running, startProgram } from './cli-world.ts';
import { CLI } from './server-world.ts';

compileFirst(join(fileURLToPath(new URL('../../', import.meta.url)), 'packages/dsec'));

interface Up extends Running {
  readonly url: string;
  readonly clientFile: string;
  readonly pids: { readonly edge: number; readonly apiserver: number };
}

const isAlive = (pid: number) => existsSync(`/proc/${pid}`) && !isZombie(pid);
const isZombie = (pid: number) => / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
const until = (check: () => Promise<void> | void) =>
  vi.waitFor(check, { timeout: 60_000, interval: 200 });

const running: Up[] = [];

async function startUp(state: string, ...more: readonly string[]): Promise<Up> {
  const args = ['--state', state, 'up', '--json', '--listen', '127.0.0.1:0', ...more];
  const one = startProgram([process.execPath, CLI, ...args], {});
  let text = '';
  one.child.stdout?.on('data', (bytes) => {
    text += bytes;
  });
  await one.said('"ready":true');
  const up = { ...one, ...JSON.parse(text.split('\n')[0] ?? '') };
  running.push(up);
  return up;
}

async function stopAll(): Promise<void> {
  for (const { child, ended, pids } of running.splice(0)) {
    child.kill('SIGTERM');
    await ended;
    await until(() => expect(Object.values(pids).filter(isAlive)).toEqual([]));
  }
}

afterEach(stopAll);

describe('dsec up on the simulated backend', () => {
  let state = '';
  beforeAll(() => {
    state = mkdtempSync(join(tmpdir(), 'dsec-up-'));
  });
  afterAll(() => rmSync(state, { recursive: true, force: true }));
  const up = () => startUp(state, '--backend', 'sim');

  it('writes where it is and a key, for its own user, and keeps the key', async () => {
    const one = await up();
    expect(one.clientFile).toBe(join(state, 'client.json'));
    const first = JSON.parse(readFileSync(one.clientFile, 'utf8'));
    expect(first).toEqual({ url: one.url, apiKey: expect.stringMatching(/^dsec_/) });
    for (const path of ['client.json', 'keys/ticket-key.json', 'up.lock']) {
      expect(statSync(join(state, path)).mode & 0o077).toBe(0);
    }
    expect((await cliOf(state).run(['ps'])).end).toBe(0);
    await stopAll();
    const two = await up();
    expect(JSON.parse(readFileSync(two.clientFile, 'utf8')).apiKey).toBe(first.apiKey);
  });

  it('is one for a state directory, and says who has it', async () => {
    const { child } = await up();
    const args = ['--state', state, 'up', '--backend', 'sim'];
    const second = await startProgram([process.execPath, CLI, ...args], {}).ended;
    expect(second.end).toBe(ERROR_CODES.conflict.exitCode);
    expect(second.stderr).toContain(`process ${child.pid}`);
  });

  it('starts a part again that was killed', async () => {
    const { pids, child, ended } = await up();
    const dsec = cliOf(state);
    for (const pid of [pids.edge, pids.apiserver]) {
      process.kill(pid, 'SIGKILL');
      await until(async () => expect((await dsec.run(['ps'])).end).toBe(0));
      expect(isAlive(pid)).toBe(false);
    }
    child.kill('SIGTERM');
    expect((await ended).stderr).toMatch(/edge ended with SIGKILL; starting it again/);
  });

  it('takes its parts along when it is killed itself, and the next one starts at once', async () => {
    const { child, pids, ended } = await up();
    child.kill('SIGKILL');
    await ended;
    const next = await up();
    expect((await cliOf(state).run(['ps'])).end).toBe(0);
    await until(() => expect(Object.values(pids).filter(isAlive)).toEqual([]));
    expect(next.pids.edge).not.toBe(pids.edge);
  });

  it('says why a part cannot start, and leaves nothing running', async () => {
    const args = ['up', '--backend', 'sim', '--edge-id', 'Not an id', '--state', state];
    const told = await startProgram([process.execPath, CLI, ...args], {}).ended;
    expect(told.end).toBe(2);
    expect(told.stderr).toContain('edge');
    expect((await cliOf(state).run(['doctor', '--json'])).end).toBe(0);
  });
});

describe('dsec up for an ordinary user (needs root)', () => {
  it.skipIf(process.getuid?.() !== 0)(
    'says what is missing, and what to do (needs root)',
    async () => {
      const state = join(tmpdir(), `dsec-up-${process.pid}-other`);
      const argv = [
        'setpriv',
        '--reuid=65534',
        '--clear-groups',
        process.execPath,
        CLI,
        '--state',
        state,
      ];
      const told = await startProgram([...argv, 'up'], {}).ended;
      rmSync(state, { recursive: true, force: true });
      expect(told.end).toBe(ERROR_CODES.unsupported.exitCode);
      expect(told.stderr).toContain('sudo dsec up');
      expect(told.stderr).toContain('--backend sim');
    },
  );
});

describe.skipIf(process.getuid?.() !== 0)('sandboxes of dsec up (needs root)', () => {
  let shared: SharedStore;
  let node: BackendWorld;
  let dsec: Cli;
  let sandbox = '';
  const up = () => startUp(shared.directory, '--edge-id', node.edgeId);

  beforeAll(async () => {
    shared = await openSharedStore();
    // A launcher that ends with the tests: those of `dsec up` outlive it.
    node = await openBackendWorld(shared);
    await node.backend.close();
    dsec = cliOf(shared.directory);
  });
  afterAll(async () => {
    await stopAll();
    await node?.close();
    shared?.remove();
  });

  const check = async () => {
    const told = await dsec.run(['exec', sandbox, '--', 'cat', '/tmp/mark']);
    expect(told).toMatchObject({ end: 0, stdout: 'here' });
  };

  it('are found again after Ctrl-C, with what they hold', async () => {
    await up();
    const layers = JSON.parse((await dsec.run(['--json', 'layer', 'ls'])).stdout).layers;
    const [{ ref }] = layers;
    sandbox = (await dsec.run(['run', '--layer', ref, '--keep'])).stdout.trim();
    await dsec.run(['cp', '-', `${sandbox}:/tmp/mark`], { input: 'here' });
    await stopAll();
    await up();
    await check();
  });

  it('are found again after the edge, the apiserver and up itself were killed', async () => {
    const { pids, child, ended } = await up();
    process.kill(pids.edge, 'SIGKILL');
    await until(check);
    process.kill(pids.apiserver, 'SIGKILL');
    await until(check);
    child.kill('SIGKILL');
    await ended;
    await up();
    await check();
    expect((await dsec.run(['stop', sandbox])).end).toBe(0);
  });
});
