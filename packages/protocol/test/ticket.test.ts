import { check, isValid, TicketClaims } from '@dsec/protocol';
import { expect, test } from 'vitest';

const claims = {
  version: 1,
  edge: 'e1',
  sandbox: 'sb-a-e1-0123456789abcdef',
  project: 'p',
  principal: 'me',
  operationClass: 'exec',
  method: 'POST',
  pathDigest: `sha256:${'0'.repeat(64)}`,
  bodyDigest: `sha256:${'1'.repeat(64)}`,
  nonce: 'A'.repeat(22),
  notBeforeMs: 1,
  notAfterMs: 30_001,
};

test('a complete set of claims', () => {
  expect(check(TicketClaims, claims, 'ticket')).toBe(claims);
});

test.each([
  ['another version', { version: 2 }],
  ['an unknown class', { operationClass: 'everything' }],
  ['an unknown method', { method: 'PATCH' }],
  ['a short nonce', { nonce: 'A' }],
  ['an edge that is no label', { edge: 'evil.example' }],
  ['a field that is not known', { admin: true }],
])('%s is refused', (_, change) => {
  expect(isValid(TicketClaims, { ...claims, ...change })).toBe(false);
});
