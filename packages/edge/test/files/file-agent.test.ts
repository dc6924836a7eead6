import { DsecError, type ErrorCode } from '@dsec/std';
import { expect, it } from 'vitest';
import { broken, fileError } from '../../src/files/file-agent.ts';

it.each([
  ['not-found', 'not-found'],
  ['storage-full', 'storage-full'],
  ['overloaded', 'overloaded'],
  ['internal', 'unavailable'],
  ['unauthenticated', 'protocol'],
  ['quota-exceeded', 'protocol'],
] as const)('an agent that says %s is understood as %s', (said, told) => {
  const details = { errno: 5 };
  expect(fileError(new DsecError(said, 'text', { details }))).toMatchObject({
    code: told,
    details,
  });
});

it('is about the path, unless it is about something else or has nothing to say of one', () => {
  const told = (code: ErrorCode, about: object = {}) =>
    fileError(new DsecError(code, 'text', { details: { errno: 2, ...about } })).details;
  expect(told('not-found')).toEqual({ errno: 2, about: 'path' });
  expect(told('not-found', { about: 'user' })).toEqual({ errno: 2, about: 'user' });
  expect(told('cancelled')).toEqual({ errno: 2 });
});

it('closes the link of an agent that breaks its word', () => {
  const closed: unknown[] = [];
  const error = broken({ close: (why: unknown) => closed.push(why) } as never, 'nonsense');
  expect(error).toMatchObject({ code: 'protocol', message: 'nonsense' });
  expect(closed).toEqual([error]);
});
