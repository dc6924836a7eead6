import { constants } from 'node:os';
import { DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { codeOfErrno, errnoName, errnoOf, syscallError } from '../src/errno.ts';

const { errno } = constants;

describe('codes', () => {
  it.each([
    [errno.ENOSPC, 'storage-full'],
    [errno.EDQUOT, 'storage-full'],
    [errno.EPERM, 'permission-denied'],
    [errno.EACCES, 'permission-denied'],
    [errno.ENOSYS, 'unsupported'],
    [errno.EOPNOTSUPP, 'unsupported'],
    [errno.ENODEV, 'unsupported'],
    [errno.EEXIST, 'already-exists'],
    [errno.ENOENT, 'not-found'],
    [errno.EBUSY, 'conflict'],
    [errno.EINVAL, 'invalid-argument'],
    [errno.EMFILE, 'overloaded'],
    [117, 'data-loss'],
    [errno.EBADF, 'internal'],
    [9999, 'internal'],
  ])('errno %i is %s', (number, code) => {
    expect(codeOfErrno(number)).toBe(code);
  });
});

it('names numbers, including those that Node has no constant for', () => {
  expect(errnoName(2)).toBe('ENOENT');
  expect(errnoName(11)).toBe('EAGAIN');
  expect(errnoName(95)).toBe('EOPNOTSUPP');
  expect(errnoName(117)).toBe('EUCLEAN');
  expect(errnoName(9999)).toBe('E9999');
});

it('makes an error that says which call failed and why', () => {
  const error = syscallError('fsconfig', errno.EINVAL, 'source="/x"', { kernelLog: 'bad' });
  expect(error.message).toBe('fsconfig source="/x": EINVAL');
  expect(error.code).toBe('invalid-argument');
  expect(error.details).toEqual({
    syscall: 'fsconfig',
    errno: errno.EINVAL,
    errnoName: 'EINVAL',
    kernelLog: 'bad',
  });
});

it('gives the errno name of its own errors only', () => {
  expect(errnoOf(syscallError('flock', errno.EAGAIN))).toBe('EAGAIN');
  expect(errnoOf(new DsecError('internal', 'x'))).toBeUndefined();
  expect(errnoOf(new Error('x'))).toBeUndefined();
});
