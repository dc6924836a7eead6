import type { Command } from '@dsec/libdsec';
import type { Exec, Sandbox } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { exitCodeOf } from '../src/client/exit-code.ts';
import {
  sandboxJson,
  showAge,
  showOrigin,
  showState,
  showTime,
} from '../src/client/table-values.ts';

const exit = { coreDumped: false, timedOut: false, oomKilled: false, trusted: true };
const exec = (info: Partial<Exec>, error?: DsecError) =>
  ({ id: 'ex-aaaaaaaaaaaaaaaa', info: { state: 'exited', ...info }, error }) as Command;

describe('exitCodeOf', () => {
  it('is the code, or 128 and the signal', () => {
    expect(exitCodeOf(exec({ exit: { ...exit, exitCode: 3 } }))).toBe(3);
    expect(exitCodeOf(exec({ exit: { ...exit, signal: 15 } }))).toBe(143);
  });

  it('is an error where there was no end, or nobody knows it', () => {
    const error = new DsecError('command-not-found', 'no such program');
    expect(() => exitCodeOf(exec({ state: 'failed' }, error))).toThrow(error);
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

  it('programs get times to the microsecond', () => {
    const timings = { allocatedMs: 10.827999997884035, readyMs: 16.7 };
    const shown = sandboxJson(sandbox({ timings }));
    expect(shown).toMatchObject({
      state: 'running',
      timings: { allocatedMs: 10.828, readyMs: 16.7 },
    });
  });

  it('of time', () => {
    expect(showTime(0)).toBe('1970-01-01 00:00:00');
    expect(showTime(undefined)).toBe('-');
    expect(showAge(5000, 65_000)).toBe('1m 0s');
    expect(showAge(5000, 0)).toBe('0.0 ms');
  });
});
