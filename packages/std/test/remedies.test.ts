import { DsecError, ERROR_CODES, fromErrorBody, REMEDIES, remedyOf, toErrorBody } from '@dsec/std';
import { expect, it } from 'vitest';

it('says more than the table where it is known what an error is about', () => {
  expect(remedyOf('not-found', 'user')).toBe(REMEDIES.user['not-found']);
  for (const about of [undefined, 'nothing known', 'toString', 7]) {
    expect(remedyOf('not-found', about)).toBe(ERROR_CODES['not-found'].remedy);
  }
  // Of a code that has nothing of its own.
  expect(remedyOf('internal', 'user')).toBe(ERROR_CODES.internal.remedy);
});

it('goes over the wire with the error', () => {
  const error = new DsecError('not-found', 'no such user or group', { details: { about: 'user' } });
  const body = toErrorBody(error);
  expect(body.remedy).toBe(REMEDIES.user['not-found']);
  expect(fromErrorBody(JSON.parse(JSON.stringify(body))).remedy).toBe(body.remedy);
});
