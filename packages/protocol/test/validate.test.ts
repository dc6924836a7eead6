import { check, isValid, ROUTES } from '@dsec/protocol';
import Type from 'typebox';
import { expect, test } from 'vitest';

const Schema = Type.Object(
  {
    a: Type.Object({ b: Type.Integer({ minimum: 1 }) }, { additionalProperties: false }),
    d: Type.Optional(Type.Enum(['x', 'y'])),
  },
  { additionalProperties: false },
);

test('a valid value comes back as it is', () => {
  const value = { a: { b: 1 } };
  expect(check(Schema, value, 'body')).toBe(value);
  expect(isValid(Schema, value)).toBe(true);
});

test('the field at fault is named, and what it must be', () => {
  expect(() => check(Schema, { a: { b: 0 } }, 'body')).toThrow(
    expect.objectContaining({
      code: 'invalid-argument',
      message: expect.stringMatching(/^body: a\.b must be >= 1/),
      details: { field: 'a.b' },
    }),
  );
  expect(() => check(Schema, null, 'body')).toThrow('body must be object');
});

test.each([
  [{ a: { b: 1 }, c: 1 }, 'body: c is not a known field'],
  [{ a: { b: 1, c: 1 } }, 'body: a.c is not a known field'],
  [{ a: {} }, 'body: a.b is missing'],
  [{}, 'body: a is missing'],
  [{ a: { b: 1 }, d: 'z' }, 'body: d must be x or y'],
])('%j', (value, message) => {
  expect(() => check(Schema, value, 'body')).toThrow(message);
});

test.each([
  [{ layers: ['base/x:1'] }, /layers\.0 is malformed.* as base\/python:3\.11\.0/],
  [{ environment: 'No Such' }, /environment is malformed.* as my-project/],
  [{ environment: 'x', labels: { Team: 'a' } }, /labels\.Team is malformed.* as team/],
  [{ environment: 'x', labels: { team: 'a b' } }, /labels\.team is malformed.* as team\/blue/],
  [{ environment: 'x', env: { '1A': '' } }, /env\.1A is malformed.* as PATH/],
  [{ environment: 'x', user: 'a b' }, /user is malformed.* as root/],
  [{ environment: 'x', cwd: 'here' }, /cwd is malformed.* as \/workspace/],
])('the form of %j is said in words', (value, message) => {
  const asked = () => check(ROUTES.createSandbox.body.schema, value, 'body');
  expect(asked).toThrow(message);
  expect(asked).not.toThrow(/[[\]^$]{2}|pattern/);
});
