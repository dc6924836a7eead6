import { readFileSync } from 'node:fs';
import {
  asDsecError,
  assert,
  assertNever,
  DsecError,
  ERROR_CODES,
  type ErrorCode,
  fromErrorBody,
  toErrorBody,
} from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

const CODES = Object.keys(ERROR_CODES) as ErrorCode[];
const details = fc.dictionary(
  fc.string(),
  fc.oneof(
    fc.string(),
    fc.boolean(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n + 0),
  ),
);

describe('DsecError', () => {
  it.each(CODES)('%s: takes everything else from the table', (code) => {
    const error = new DsecError(code, 'what happened');
    const { status, retryable, exitCode, remedy } = error;
    expect({ status, retryable, exitCode, remedy }).toEqual(ERROR_CODES[code]);
    expect(error).toMatchObject({ name: 'DsecError', message: 'what happened', details: {} });
    expect(error).toBeInstanceOf(Error);
    expect('cause' in error).toBe(false);
  });

  it('keeps the cause', () => {
    const cause = new Error('below');
    expect(new DsecError('internal', 'above', { cause }).cause).toBe(cause);
  });
});

describe('the wire form', () => {
  it('brings code, message and details across', () => {
    const body = fc.record({ code: fc.constantFrom(...CODES), message: fc.string(), details });
    fc.assert(
      fc.property(body, ({ code, message, details }) => {
        const sent = JSON.parse(
          JSON.stringify(toErrorBody(new DsecError(code, message, { details }))),
        );
        const received = fromErrorBody(sent);
        expect(received.code).toBe(code);
        expect(received.message).toBe(message);
        expect(Object.entries(received.details)).toEqual(
          Object.entries(JSON.parse(JSON.stringify(details))),
        );
      }),
      { seed: 1 },
    );
  });

  it('takes anything a peer may send', () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), fc.anything(), (code, message, details) => {
        const error = fromErrorBody({ code, message, details });
        expect(CODES).toContain(error.code);
        expect(typeof error.message).toBe('string');
      }),
      { seed: 1 },
    );
    expect(fromErrorBody({ code: 'from-the-future', message: 'x' }).code).toBe('internal');
    expect(
      fromErrorBody({ code: 'conflict', message: 'x', details: { deep: {} } }).details,
    ).toEqual({});
  });
});

describe('asDsecError', () => {
  it('leaves ours alone and wraps everything else with its cause', () => {
    const ours = new DsecError('conflict', 'x');
    expect(asDsecError(ours)).toBe(ours);
    for (const thrown of [undefined, null, 0, 'text', { some: 'object' }, new TypeError('bad')]) {
      const error = asDsecError(thrown);
      expect(error.code).toBe('internal');
      expect(error.cause).toBe(thrown);
    }
  });

  it.each([
    ['ENOSPC', 'storage-full'],
    ['EDQUOT', 'storage-full'],
    ['ENOENT', 'not-found'],
    ['EACCES', 'permission-denied'],
    ['EPERM', 'permission-denied'],
    ['ENOTDIR', 'invalid-argument'],
    ['ENAMETOOLONG', 'invalid-argument'],
    ['EXDEV', 'invalid-argument'],
    ['EMFILE', 'overloaded'],
    ['EIO', 'internal'],
  ])('%s means %s', (code, expected) => {
    expect(asDsecError(Object.assign(new Error('no'), { code })).code).toBe(expected);
  });

  it('knows what the system and signals really throw', () => {
    const thrownBy = (act: () => unknown) => {
      try {
        return act();
      } catch (error) {
        return error;
      }
    };
    expect(asDsecError(thrownBy(() => readFileSync('/no/such/file'))).code).toBe('not-found');
    expect(asDsecError(AbortSignal.abort().reason).code).toBe('cancelled');
    expect(asDsecError(new DOMException('late', 'TimeoutError')).code).toBe('deadline-exceeded');
  });

  it('knows the reason of a timeout and of a read that was aborted', async () => {
    const { setTimeout: sleep } = await import('node:timers/promises');
    const late = AbortSignal.timeout(1);
    await new Promise((resolve) => late.addEventListener('abort', resolve, { once: true }));
    expect(asDsecError(late.reason).code).toBe('deadline-exceeded');
    const aborted = sleep(1000, undefined, { signal: AbortSignal.abort() }).catch((error) => error);
    expect(asDsecError(await aborted).code).toBe('cancelled');
  });
});

describe('assertions', () => {
  it('are faults of our own', () => {
    expect(() => assert(1 + 1 === 2, 'sums')).not.toThrow();
    expect(() => assert(1 + 1 === 3, 'sums')).toThrow('invariant broken: sums');
    expect(() => assertNever('surprise' as never)).toThrow('unexpected value "surprise"');
  });
});
