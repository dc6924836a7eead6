import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { run } from './run.mjs';

const sh = (script: string, timeoutMs = 20_000) => run('sh', ['-c', script], { timeoutMs });

describe('run', () => {
  it('gives the exit code, stdout alone and the tail of both streams', async () => {
    const result = await sh('echo out; echo err >&2; printf last; exit 3');
    expect(result).toMatchObject({ code: 3, stdout: 'out\nlast', timedOut: false });
    expect(result.tail.split('\n').sort()).toEqual(['err', 'last', 'out']);
  });

  it('keeps the last forty lines for a message', async () => {
    const { tail } = await sh('seq 1 1000');
    expect(tail.split('\n')).toEqual(Array.from({ length: 40 }, (_, i) => String(961 + i)));
  });

  it('answers 127 for a command that does not exist, and never rejects', async () => {
    const result = await run('dsec-no-such-command', [], { timeoutMs: 1000 });
    expect(result.code).toBe(127);
    expect(result.tail).toContain('ENOENT');
  });

  it('ends a command with its children when its time is over', async () => {
    const result = await sh('sleep 60 & echo $!; wait', 300);
    expect(result).toMatchObject({ timedOut: true, code: 143 });
    await expect.poll(() => isAlive(Number(result.stdout))).toBe(false);
  });

  it('splits lines at carriage returns, as progress bars write them', async () => {
    const lines: string[] = [];
    await run('printf', ['a\\rb\\r\\nc'], { timeoutMs: 1000, onLine: (line) => lines.push(line) });
    expect(lines).toEqual(['a', 'b', 'c']);
  });
});

/** A process that has ended may stay as a zombie until the init of this machine looks at it. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
