import { DsecError as CodedError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { AgentLostError, CommandFailed, CommandNotFoundError } from '../src/index.ts';
import { runCommand } from '../src/run-command.ts';
import { EXEC_ID, execInfo, joined, SANDBOX_ID, serverOf } from './support/fake-server.ts';

const SPEC = { shell: 'true' };
const running = execInfo({}, { state: 'running' });
const inline = (text: string) => ({ offset: 0, text });

describe('runCommand', () => {
  it('is one request when the command ends soon', async () => {
    let requests = 0;
    const server = await serverOf({
      async startExec({ body, params }) {
        requests += 1;
        expect(params).toEqual({ sandboxId: SANDBOX_ID });
        expect(body).toEqual({ shell: 'true', waitMs: 30_000 });
        const exec = execInfo({ stdoutBytes: 2 });
        return { exec, stdout: inline('hi'), stderr: inline('') };
      },
    });
    expect(await runCommand(server, SANDBOX_ID, SPEC, {})).toMatchObject({
      ...{ stdout: 'hi', exitCode: 0, execId: EXEC_ID },
    });
    expect(requests).toBe(1);
  });

  it('asks on until a longer one has ended', async () => {
    let asked = 0;
    const server = await serverOf({
      startExec: async () => ({ exec: running }),
      async getExec({ query }) {
        asked += 1;
        expect(query).toEqual({ waitMs: 30_000 });
        return asked < 3 ? running : execInfo();
      },
    });
    expect((await runCommand(server, SANDBOX_ID, SPEC, {})).ok).toBe(true);
    expect(asked).toBe(3);
  });

  it('feeds standard input while it waits, and does not mind a command that reads none', async () => {
    let fed = '';
    let ended = () => {};
    const end = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const server = await serverOf({
      async startExec({ body }) {
        expect(body).toEqual({ shell: 'true', stdin: true });
        return { exec: running };
      },
      async writeExecStdin({ body, query }) {
        fed += (await joined(body)).toString();
        if (query.end) ended();
        return { offset: fed.length };
      },
      async getExec() {
        await end;
        return execInfo();
      },
    });
    await runCommand(server, SANDBOX_ID, SPEC, { stdin: Buffer.from('input') });
    expect(fed).toBe('input');

    const deaf = await serverOf({
      startExec: async () => ({ exec: running }),
      writeExecStdin: async ({ body }) => {
        await joined(body);
        throw new CodedError('state-conflict', 'it has ended');
      },
      getExec: async () => execInfo(),
    });
    const result = await runCommand(deaf, SANDBOX_ID, SPEC, { stdin: Buffer.from('input') });
    expect(result.ok).toBe(true);
  });

  it('fails when standard input cannot be written for another reason', async () => {
    const server = await serverOf({
      startExec: async () => ({ exec: running }),
      writeExecStdin: async ({ body }) => {
        await joined(body);
        throw new CodedError('agent-lost', 'gone');
      },
      getExec: (_, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    });
    const run = runCommand(server, SANDBOX_ID, SPEC, { stdin: Buffer.from('input') });
    await expect(run).rejects.toBeInstanceOf(AgentLostError);
  });

  it('throws what kept a command from running, and never makes an exit code up', async () => {
    const error = { code: 'command-not-found', message: 'no x', retryable: false, remedy: 'r' };
    const failed = execInfo({}, { state: 'failed', error: { ...error, details: {} } as never });
    const unknown = execInfo({}, { state: 'unknown' });
    for (const [exec, type] of [
      [failed, CommandNotFoundError],
      [unknown, AgentLostError],
    ] as const) {
      const server = await serverOf({ startExec: async () => ({ exec }) });
      await expect(runCommand(server, SANDBOX_ID, SPEC, {})).rejects.toBeInstanceOf(type);
    }
  });

  it('checks the exit code when it is asked to', async () => {
    const exit = { coreDumped: false, timedOut: false, oomKilled: false, trusted: true };
    const exec = execInfo({}, { exit: { ...exit, exitCode: 3 } });
    const server = await serverOf({ startExec: async () => ({ exec }) });
    const result = await runCommand(server, SANDBOX_ID, SPEC, {});
    expect(result).toMatchObject({ ok: false, exitCode: 3 });
    const checked = runCommand(server, SANDBOX_ID, SPEC, { check: true });
    await expect(checked).rejects.toBeInstanceOf(CommandFailed);
  });
});
