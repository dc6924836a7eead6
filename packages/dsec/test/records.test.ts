import type { Exec, Sandbox } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { exitCodeOf } from '../src/client/exit-code.ts';
import { showAge, showOrigin, showState, showTime } from '../src/client/table-values.ts';

const exit = { coreDumped: false, timedOut: false, oomKilled: false, trusted: true };
const exec = (rest: Partial<Exec>) =>
  ({ id: 'ex-aaaaaaaaaaaaaaaa', state: 'exited', ...rest }) as Exec;

describe('exitCodeOf', () => {
  it('is the code, or 128 and the signal', () => {
    expect(exitCodeOf(exec({ exit: { ...exit, exitCode: 3 } }))).toBe(3);
    expect(exitCodeOf(exec({ exit: { ...exit, signal: 15 } }))).toBe(143);
  });

  it('is an error where there was no end, or nobody knows it', () => {
    const error = { code: 'command-not-found', message: 'no such program' } as Exec['error'];
    const failed = exec({ state: 'failed', ...(error === undefined ? {} : { error }) });
    expect(() => exitCodeOf(failed)).toThrow(
      expect.objectContaining({ code: 'command-not-found', message: 'no such program' }),
    );
    const unknown = expect.objectContaining({ code: 'agent-lost' });
    expect(() => exitCodeOf(exec({ state: 'unknown' }))).toThrow(unknown);
  });
});

describe('what tables show', () => {
  const sandbox = (rest: object) =>
    ({ state: 'running', spec: {}, layers: [], ...rest }) as unknown as Sandbox;

  it('of a sandbox', () => {
    expect(showState(sandbox({ state: 'failed', endReason: 'oom' }))).toBe('failed (oom)');
    expect(showState(sandbox({ state: 'stopped', endReason: 'stopped' }))).toBe('stopped');
    expect(showOrigin(sandbox({ spec: { environment: 'mine' } }))).toBe('mine');
    const layers = ['base/a:1.0.0', 'workspace/b:1.0.0'];
    expect(showOrigin(sandbox({ spec: { layers } }))).toBe('base/a:1.0.0 +1');
    expect(showOrigin(sandbox({}))).toBe('-');
  });

  it('of time', () => {
    expect(showTime(0)).toBe('1970-01-01 00:00:00');
    expect(showTime(undefined)).toBe('-');
    expect(showAge(5000, 65_000)).toBe('1m 0s');
    expect(showAge(5000, 0)).toBe('0.0 ms');
  });
});
