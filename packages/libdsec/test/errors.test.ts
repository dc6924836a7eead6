import { DsecError as CodedError, ERROR_CODES, type ErrorCode } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import {
  CommandFailed,
  clientErrorOf,
  DeadlineExceededError,
  DsecError,
  ERROR_CLASSES,
  ExecResult,
  NotFoundError,
  Timeout,
} from '../src/index.ts';
import { execInfo } from './support/fake-server.ts';

describe('errors', () => {
  it('have a class for every code, named by it', () => {
    for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
      const error = clientErrorOf(new CodedError(code, 'why'), 'r1');
      expect(error).toBeInstanceOf(ERROR_CLASSES[code]);
      expect(error).toBeInstanceOf(DsecError);
      expect(error).toBeInstanceOf(CodedError);
      const name = code.replace(/(^|-)([a-z])/g, (_, _dash, letter) => letter.toUpperCase());
      expect(error).toMatchObject({ name: `${name}Error`, code, message: 'why', requestId: 'r1' });
      expect(error.status).toBe(ERROR_CODES[code].status);
    }
  });

  it('keep their details and cause, and are not wrapped twice', () => {
    const cause = new Error('below');
    const coded = new CodedError('not-found', 'gone', { details: { field: 'id' }, cause });
    const error = clientErrorOf(coded);
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error.details).toEqual({ field: 'id' });
    expect(error.cause).toBe(cause);
    expect(clientErrorOf(error)).toBe(error);
    expect(clientErrorOf(new TypeError('x'))).toMatchObject({ code: 'internal' });
  });

  it('tell a wait that is over from a server that was slow', () => {
    expect(new Timeout('not yet')).toBeInstanceOf(DeadlineExceededError);
    expect(new Timeout('not yet')).toMatchObject({ name: 'Timeout', code: 'deadline-exceeded' });
  });

  it('say of a command that failed how, and the end of what it complained', () => {
    const nothing = { bytes: Buffer.alloc(0), truncated: false };
    const complaint = {
      bytes: Buffer.from(`${'.'.repeat(1000)}no such thing\n`),
      truncated: false,
    };
    const exit = { coreDumped: false, timedOut: false, oomKilled: true, trusted: true, signal: 9 };
    const result = new ExecResult(execInfo({}, { exit }), nothing, complaint);
    const error = new CommandFailed(result);
    expect(error).not.toBeInstanceOf(DsecError);
    expect(error.result).toBe(result);
    expect(error.message).toMatch(/^the command was ended by signal 9, out of memory: \.+no such/);
    expect(error.message.length).toBeLessThan(600);
  });
});
