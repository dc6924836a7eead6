import { ERROR_CODES, isErrorCode } from '@dsec/std';
import { describe, expect, it } from 'vitest';

const ROWS = Object.entries(ERROR_CODES);

describe('ERROR_CODES', () => {
  it.each(ROWS)('%s: a name, a status, an exit code and a remedy', (code, row) => {
    expect(code).toMatch(/^[a-z]+(-[a-z]+)*$/);
    expect(row.status).toBeGreaterThanOrEqual(400);
    expect(row.status).toBeLessThan(600);
    expect(row.exitCode).toBeGreaterThanOrEqual(1);
    expect(row.exitCode).toBeLessThanOrEqual(63);
    expect(row.remedy).toMatch(/^[A-Z].*\.$/);
  });

  it('has an exit code for each', () => {
    expect(new Set(ROWS.map(([, { exitCode }]) => exitCode)).size).toBe(ROWS.length);
  });

  it('calls no request retryable that HTTP calls wrong', () => {
    const wrong = [400, 401, 403, 404, 410, 413, 422, 501];
    const bad = ROWS.filter(([, row]) => row.retryable && wrong.includes(row.status));
    expect(bad).toEqual([]);
  });
});

describe('isErrorCode', () => {
  it('knows the table and nothing that every object has', () => {
    expect(isErrorCode('not-found')).toBe(true);
    for (const value of [
      'toString',
      '__proto__',
      'constructor',
      '',
      'Not-Found',
      7,
      null,
      undefined,
    ]) {
      expect(isErrorCode(value)).toBe(false);
    }
  });
});
