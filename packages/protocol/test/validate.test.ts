import { check, isValid } from '@dsec/protocol';
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
