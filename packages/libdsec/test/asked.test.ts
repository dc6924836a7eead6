import { DsecError as CodedError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { type Asked, askedOf, messageFor } from '../src/asked.ts';
import { runCommand } from '../src/run-command.ts';
import { clientOf, execInfo, SANDBOX_ID, sandboxInfo, serverOf } from './support/fake-server.ts';

const ENOENT = { details: { errno: 2 } };
const asked: Asked = {
  ...{
    sandbox: SANDBOX_ID,
    key: 'ke-x',
    path: '/nope',
    program: 'nonesuch',
    cwd: '/away',
    user: 'bob',
  },
};
const told = (message: string, names: Asked = asked, options: object = ENOENT) =>
  messageFor(new CodedError('not-found', message, options), names);

describe('messageFor', () => {
  it.each([
    ['command: No such file or directory', 'nonesuch: No such file or directory'],
    ['working directory: Not a directory', 'working directory /away: Not a directory'],
    ['no such user or group: No such file or directory', 'no such user or group: bob'],
    ['read: No such file or directory', '/nope: read: No such file or directory'],
    ['there is no such sandbox', `there is no such sandbox: ${SANDBOX_ID}`],
    ['there is no such key', 'there is no such key: ke-x'],
    ['mkdir /nope: File exists', 'mkdir /nope: File exists'],
  ])('%s', (message, named) => expect(told(message)).toBe(named));

  it('leaves what it has no name for, and what the server itself says', () => {
    expect(told('command: Killed', {})).toBe('command: Killed');
    expect(told('no such user or group: No such process', {})).toBe('no such user or group');
    expect(told('the key may not do that', asked, {})).toBe('the key may not do that');
  });

  it('shows a name escaped, and no more of it than can be read', () => {
    expect(told('read: gone', { path: '/\u001b[1m' })).toBe('/\\u{1b}[1m: read: gone');
    const long = told('read: gone', { path: `/${'\u0007'.repeat(10_000)}` });
    expect(long.length).toBeLessThanOrEqual(200 + ': read: gone'.length);
    expect(long).toContain('…');
  });
});

describe('askedOf', () => {
  it('finds the names in a call', () => {
    const params = { sandboxId: SANDBOX_ID };
    expect(askedOf({ params, query: { path: '/x' } })).toMatchObject({
      ...{ sandbox: SANDBOX_ID, path: '/x' },
    });
    expect(askedOf({ params, body: { source: '/a', target: '/b' } }).path).toBe('/a → /b');
    expect(askedOf({ params, body: { argv: ['ls', '-l'], cwd: '/w' } })).toMatchObject({
      ...{ program: 'ls', cwd: '/w' },
    });
    expect(askedOf({ body: { shell: 'ls' } }).program).toBe('/bin/sh');
    expect(askedOf({ body: Buffer.from('path') })).toEqual({});
  });
});

describe('an error of a client', () => {
  it('names the path, the sandbox and the program', async () => {
    const client = await clientOf({
      async getSandbox({ params }) {
        if (params.sandboxId === SANDBOX_ID) return sandboxInfo();
        throw new CodedError('not-found', 'there is no such sandbox');
      },
      async readFile() {
        throw new CodedError('not-found', 'read: No such file or directory', ENOENT);
      },
    });
    const sandbox = await client.get(SANDBOX_ID);
    await expect(sandbox.files.read('/nope')).rejects.toThrow('/nope: read: No such file');
    const other = SANDBOX_ID.replaceAll('a', 'c');
    await expect(client.get(other)).rejects.toThrow(`there is no such sandbox: ${other}`);
    const error = { code: 'command-not-found', message: 'command: No such file or directory' };
    const body = { ...error, retryable: false, remedy: '', details: { errno: 2 } } as const;
    const exec = { ...execInfo({}, { state: 'failed', error: body as never }), exit: undefined };
    const server = await serverOf({ startExec: async () => ({ exec }) as never });
    const run = runCommand(server, SANDBOX_ID, { argv: ['nonesuch', 'x'] }, {});
    await expect(run).rejects.toThrow('nonesuch: No such file or directory');
  });
});
