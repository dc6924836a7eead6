import { DsecError } from '@dsec/std';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  createByteProgress,
  printError,
  printJson,
  renderTable,
  sayIfSlow,
} from '../src/output.ts';

describe('renderTable', () => {
  it('aligns columns under their heading', () => {
    expect(
      renderTable(
        ['NAME', 'N'],
        [
          ['a', '1'],
          ['longer', '22'],
        ],
      ).split('\n'),
    ).toEqual(['NAME    N', 'a       1', 'longer  22']);
  });

  it('prints no heading line when there is none', () => {
    expect(renderTable([], [['id', 'x']])).toBe('id  x');
  });

  it('shows control characters instead of obeying them', () => {
    const table = renderTable(['NAME'], [['\u001b[2J\u202eevil\r\nline']]);
    expect(table.split('\n')).toHaveLength(2);
    expect(table).not.toContain('\u001b');
    expect(table).toContain('\\u{1b}[2J');
  });
});

describe('what is written', () => {
  const written = { stdout: '', stderr: '' };

  beforeEach(() => {
    written.stdout = written.stderr = '';
    for (const name of ['stdout', 'stderr'] as const) {
      vi.spyOn(process[name], 'write').mockImplementation((text) => {
        written[name] += String(text);
        return true;
      });
    }
  });

  afterEach(() => vi.restoreAllMocks());

  it('puts one JSON document on one line', () => {
    printJson({ a: 'x\ny' });
    expect(written.stdout).toBe('{"a":"x\\ny"}\n');
  });

  it('tells people the code, the escaped message and what to do, on stderr', () => {
    printError(new DsecError('not-found', 'no layer \u001b[31mred'), false);
    expect(written.stdout).toBe('');
    expect(written.stderr).toMatch(/^dsec: not-found: no layer \\u\{1b\}\[31mred\n {6}\S/);
  });

  it('gives programs the wire form of an error, on stdout', () => {
    printError(new DsecError('too-large', 'big', { details: { max: 3 } }), true);
    expect(JSON.parse(written.stdout)).toEqual({
      error: expect.objectContaining({ code: 'too-large', message: 'big', details: { max: 3 } }),
    });
  });

  it('says once what takes long, and nothing of what does not', async () => {
    vi.useFakeTimers();
    try {
      await sayIfSlow(Promise.resolve(), 'slow');
      await vi.advanceTimersByTimeAsync(60_000);
      expect(written.stderr).toBe('');
      const slow = sayIfSlow(new Promise((resolve) => setTimeout(resolve, 30_000)), 'slow');
      await vi.advanceTimersByTimeAsync(30_000);
      await slow;
      expect(written).toEqual({ stdout: '', stderr: 'dsec: slow\n' });
    } finally {
      vi.useRealTimers();
    }
  });

  it('keeps progress bars out of logs: standard error of a test is no terminal', () => {
    const bar = createByteProgress('import');
    bar.update(10, 100, 'half');
    bar.finish();
    expect(written).toEqual({ stdout: '', stderr: '' });
  });
});
