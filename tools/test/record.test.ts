import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { judgeFloor, raiseFloors, readFloors } from './floors.mjs';
import { parseOptions } from './options.mjs';
import { countOf, explainSkip, recordOf } from './record.mjs';
import { summaryLines } from './summary.mjs';

describe('explainSkip', () => {
  const skipped = (name: string, reason?: string) =>
    explainSkip(recordOf('a.test.ts', name, { state: 'skipped', reason }));

  it('takes the reason that was given, else the need in the title', () => {
    expect(skipped('mounts', 'no overlayfs').reason).toBe('no overlayfs');
    expect(skipped('mounts (needs root)').reason).toBe('needs root');
  });

  it('makes a failure of a skip that nobody explains', () => {
    expect(skipped('mounts')).toMatchObject({
      state: 'failed',
      errors: [expect.stringContaining('skipped without a reason')],
    });
  });

  it('leaves other records alone', () => {
    const record = recordOf('a.test.ts', 'x', { state: 'passed' });
    expect(explainSkip(record)).toBe(record);
  });
});

describe('floors', () => {
  it('refuse fewer tests and a suite without a number', () => {
    const floors = new Map([['unit', 10]]);
    expect(judgeFloor('unit', 10, floors)).toBeUndefined();
    expect(judgeFloor('unit', 9, floors)).toContain('tests/floors.json asks for 10');
    expect(judgeFloor('fuzz', 9, floors)).toContain('no floor for fuzz');
  });

  it('are raised and never lowered', () => {
    const folder = mkdtempSync(join(tmpdir(), 'dsec-floors-'));
    const path = join(folder, 'floors.json');
    raiseFloors(path, new Map([['unit', 10]]));
    raiseFloors(
      path,
      new Map([
        ['unit', 7],
        ['fuzz', 3],
      ]),
    );
    expect(readFloors(path)).toEqual(
      new Map([
        ['fuzz', 3],
        ['unit', 10],
      ]),
    );
    expect(readFileSync(path, 'utf8')).toBe('{\n  "fuzz": 3,\n  "unit": 10\n}\n');
    rmSync(folder, { recursive: true });
  });
});

describe('summaryLines', () => {
  it('shows counts, floors, reasons and the first line of each error', () => {
    const records = [
      recordOf('a.test.ts', 'passes', { state: 'passed' }),
      recordOf('a.test.ts', 'mounts', { state: 'skipped', reason: 'needs root' }),
      recordOf('b.test.ts', 'fails', { state: 'failed', errors: ['boom\n  at b.test.ts:3'] }),
    ];
    const results = [{ suite: { name: 'unit' }, records, durationMs: 1234 }];
    const text = summaryLines(results, new Map([['unit', 1]])).join('\n');
    expect(text).toContain('unit                1        1        1        1      1.2');
    expect(text).toContain('skipped:\n  unit: a.test.ts › mounts: needs root');
    expect(text).toContain('failed:\n  unit: b.test.ts › fails: boom\n');
    expect(countOf(records)).toEqual({ passed: 1, failed: 1, skipped: 1 });
  });
});

describe('parseOptions', () => {
  const known = ['static', 'unit', 'fuzz'];

  it('takes suites in both forms', () => {
    expect(parseOptions(['--only', 'unit,fuzz', '--long'], known)).toMatchObject({
      only: ['unit', 'fuzz'],
      long: true,
    });
    expect(parseOptions(['--only=static'], known).only).toEqual(['static']);
  });

  it.each([[['--only', 'unti']], [['--only']], [['--only', '']], [['--fast']]])(
    'refuses %j',
    (args) => {
      expect(() => parseOptions(args, known)).toThrow(
        /--only takes some of static, unit, fuzz|unknown option/,
      );
    },
  );
});
