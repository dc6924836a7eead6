import { DsecError } from '@dsec/std';
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

it('closes the link of an agent that breaks its word', () => {
  const closed: unknown[] = [];
  const error = broken({ close: (why: unknown) => closed.push(why) } as never, 'nonsense');
  expect(error).toMatchObject({ code: 'protocol', message: 'nonsense' });
  expect(closed).toEqual([error]);
});
