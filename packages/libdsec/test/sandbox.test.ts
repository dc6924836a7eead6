import { DsecError as CodedError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { Client, type Command, Sandbox, StateConflictError, Timeout } from '../src/index.ts';
import {
  API_KEY,
  clientOf,
  EXEC_ID,
  execInfo,
  listed,
  SANDBOX_ID,
  sandboxInfo,
  startFake,
} from './support/fake-server.ts';

describe('a sandbox', () => {
  it('is waited for by its revision', async () => {
    const asked: object[] = [];
    const client = await clientOf({
      createSandbox: async ({ body }) => {
        expect(body).toEqual({ environment: 'x', waitFor: 'allocated' });
        return sandboxInfo({ state: 'creating' });
      },
      async getSandbox({ query }) {
        asked.push(query);
        const state = asked.length < 3 ? 'creating' : 'running';
        return sandboxInfo({ state, revision: asked.length });
      },
    });
    const sandbox = await client.create({ environment: 'x', waitFor: 'allocated' });
    expect(sandbox.state).toBe('creating');
    expect((await sandbox.wait()).state).toBe('running');
    expect(asked).toEqual([
      {},
      { afterRevision: 1, waitMs: 30_000 },
      { afterRevision: 2, waitMs: 30_000 },
    ]);
    await expect(sandbox.wait({ state: 'ended', timeout: 0 })).rejects.toBeInstanceOf(Timeout);
  });

  it('replaces its network rules by the version that it has seen', async () => {
    const asked: object[] = [];
    const network = { address: '100.96.0.2', version: 5, rules: [] };
    const client = await clientOf({
      getSandbox: async () => sandboxInfo(),
      async updateNetwork({ body }) {
        asked.push(body);
        return sandboxInfo({ network });
      },
    });
    const sandbox = await client.get(SANDBOX_ID);
    await expect(sandbox.setNetwork([])).rejects.toMatchObject({ code: 'unsupported' });
    const rules = [{ kind: 'service', target: 'pypi' }] as const;
    await sandbox.setNetwork(rules, { version: 4 });
    expect(sandbox.info.network).toEqual(network);
    await sandbox.setNetwork([]);
    expect(asked).toEqual([
      { version: 4, rules },
      { version: 5, rules: [] },
    ]);
  });

  it('that has failed is not waited for, and says why', async () => {
    const error = { code: 'internal', message: 'no room', retryable: true, remedy: 'r' } as const;
    const failed = sandboxInfo({ state: 'failed', error: { ...error, details: {} } });
    const client = await clientOf({ getSandbox: async () => failed });
    const sandbox = await client.get(SANDBOX_ID);
    const wait = sandbox.wait();
    await expect(wait).rejects.toBeInstanceOf(StateConflictError);
    await expect(wait).rejects.toThrow('no room');
    expect((await sandbox.wait({ state: 'ended' })).state).toBe('failed');
  });

  it('is stopped when its context is left, whatever happened in it', async () => {
    let stops = 0;
    const url = await startFake({
      createSandbox: async () => sandboxInfo(),
      async stopSandbox() {
        stops += 1;
        return sandboxInfo({ state: 'stopped' });
      },
    });
    const use = async () => {
      await using sandbox = await Sandbox.create({ url, apiKey: API_KEY, environment: 'x' });
      expect(sandbox.state).toBe('running');
      throw new Error('in between');
    };
    await expect(use()).rejects.toThrow('in between');
    expect(stops).toBe(1);
    await using client = new Client({ url, apiKey: API_KEY });
    const kept = await Sandbox.create({ client, environment: 'x' });
    await kept[Symbol.asyncDispose]();
    expect((await client.create({ environment: 'x' })).state).toBe('running');
  });

  it('that nobody knows any more can be left all the same', async () => {
    const url = await startFake({ createSandbox: async () => sandboxInfo() });
    await using sandbox = await Sandbox.create({ url, apiKey: API_KEY, environment: 'x' });
    await expect(sandbox.stop()).rejects.toMatchObject({ name: 'NotFoundError' });
  });

  it('has commands whose kill does nothing when they have ended', async () => {
    let state: 'running' | 'exited' = 'running';
    const client = await clientOf({
      getSandbox: async () => sandboxInfo(),
      startExec: async () => ({ exec: execInfo({}, { state: 'running' }) }),
      getExec: async () => execInfo({}, { state }),
      async signalExec() {
        throw new CodedError('state-conflict', 'the command has ended');
      },
    });
    const command = await (await client.get(SANDBOX_ID)).start(['a']);
    await expect(command.kill()).rejects.toMatchObject({ name: 'StateConflictError' });
    state = 'exited';
    await command.kill();
    await expect(command.signal(15)).rejects.toMatchObject({ name: 'StateConflictError' });
  });

  it('has commands that are started, listed and found', async () => {
    const bodies: object[] = [];
    const client = await clientOf({
      getSandbox: async () => sandboxInfo(),
      async startExec({ body }) {
        bodies.push(body);
        return { exec: execInfo({}, { state: 'running' }) };
      },
      listExecs: async () => ({ execs: [execInfo()] }),
      getExec: async () => execInfo(),
      signalExec: async ({ body }) => void bodies.push(body),
    });
    const sandbox = await client.get(SANDBOX_ID);
    const command = await sandbox.start(['a', 'b'], {
      ...{ cwd: '/w', env: { A: '1' }, user: 'u', timeout: 1.5, stdin: true, maxOutputBytes: 10 },
      pty: { rows: 2, columns: 3 },
    });
    expect(bodies[0]).toEqual({
      ...{ argv: ['a', 'b'], cwd: '/w', env: { A: '1' }, user: 'u', timeoutMs: 1500 },
      ...{ stdin: true, outputBytesMax: 10, pty: { rows: 2, columns: 3 } },
    });
    await command.kill();
    await command.signal(2, { scope: 'leader' });
    expect(bodies.slice(1)).toEqual([
      { signal: 9, scope: 'tree' },
      { signal: 2, scope: 'leader' },
    ]);
    const [found] = (await listed(sandbox.commands())) as [Command];
    expect(found.id).toBe(EXEC_ID);
    expect((await (await sandbox.command(EXEC_ID)).wait()).ok).toBe(true);
  });
});
