import { DsecError, ERROR_CODES, type ErrorCode } from '@dsec/std';
import { expect, it } from 'vitest';
import { closeCodeOf, closeReasonOf, errorOfClose } from '../src/index.ts';

it('carries every error code through a close and back', () => {
  const codes = Object.keys(ERROR_CODES) as ErrorCode[];
  const closeCodes = codes.map((code) => closeCodeOf(new DsecError(code, 'why')));
  expect(new Set(closeCodes).size).toBe(codes.length);
  for (const [index, code] of codes.entries()) {
    expect(errorOfClose(closeCodes[index] ?? 0, 'why')).toMatchObject({ code, message: 'why' });
  }
});

it('understands the codes of others', () => {
  expect(errorOfClose(1000, '')).toBeUndefined();
  expect(errorOfClose(1006, '')?.code).toBe('unavailable');
  expect(errorOfClose(1008, '')?.code).toBe('permission-denied');
  expect(errorOfClose(3999, '')?.code).toBe('protocol');
  expect(errorOfClose(4999, '')?.code).toBe('protocol');
});

it('cuts a reason to what a close frame holds, between characters', () => {
  const reason = closeReasonOf(new DsecError('conflict', '\u00e9'.repeat(100)));
  expect(reason).toBe('\u00e9'.repeat(61));
  expect(closeReasonOf(new DsecError('conflict', 'short'))).toBe('short');
});
