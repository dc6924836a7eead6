import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bounded, childFailure, runChild } from '../../src/probe/bounded.ts';

describe('children', () => {
  it('returns what a program printed and how it ended', async () => {
    const result = await runChild('sh', ['-c', 'echo out; echo err >&2; exit 3'], 10_000);
    expect(result).toEqual({ kind: 'exit', code: 3, stdout: 'out\n', stderr: 'err\n' });
    expect(childFailure(result)).toBe('err');
  });

  it('kills a program at its limit', async () => {
    const result = await runChild('sleep', ['60'], 50);
    expect(result).toEqual({ kind: 'late', limitMs: 50, stdout: '' });
    expect(childFailure(result)).toBe('no answer within 50 ms');
  });

  it('counts a second limit from the first output', async () => {
    const started = await runChild('sh', ['-c', 'echo up; exec sleep 60'], 20_000, 50);
    expect(started).toEqual({ kind: 'late', limitMs: 50, stdout: 'up\n' });
    const slow = await runChild('sh', ['-c', 'echo up; sleep 0.2; echo end'], 20_000, 20_000);
    expect(slow).toMatchObject({ kind: 'exit', stdout: 'up\nend\n' });
  });

  it('says so when there is no such program, and when it was killed', async () => {
    const missing = await runChild('/nonexistent/program', [], 1_000);
    expect(childFailure(missing)).toContain('ENOENT');
    const killed = await runChild('sh', ['-c', 'kill -9 $$'], 10_000);
    expect(childFailure(killed)).toBe('ended by SIGKILL');
    expect(childFailure({ kind: 'exit', code: 7, stdout: '', stderr: '' })).toBe('exit code 7');
  });

  it('keeps a bounded part of endless output', async () => {
    const result = await runChild('sh', ['-c', 'head -c 3000000 /dev/zero'], 20_000);
    expect(result.kind === 'exit' && result.stdout.length).toBeLessThan(1_000_000);
  });

  it('leaves no process behind', async () => {
    const { kind, ...rest } = await runChild('sh', ['-c', 'echo $$'], 10_000);
    expect(kind).toBe('exit');
    expect(existsSync(`/proc/${Number('stdout' in rest ? rest.stdout : 0)}`)).toBe(false);
  });
});

describe('work with a limit', () => {
  const why = (text: string) => `fallback: ${text}`;

  it('gives the result', async () => {
    expect(await bounded(async () => 'done', 1_000, why)).toBe('done');
  });

  it('falls back at the limit and on an error, and never rejects', async () => {
    const never = new Promise<string>(() => undefined);
    expect(await bounded(() => never, 20, why)).toBe('fallback: no answer within 20 ms');
    const failing = async () => {
      throw new Error('broken');
    };
    expect(await bounded(failing, 1_000, why)).toBe('fallback: broken');
  });
});
