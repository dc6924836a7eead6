import { systemRandom } from '@dsec/std';
import { expect, test } from 'vitest';
import { hashOfSecret, keyIdOf, newSecret, SECRET } from '../src/index.ts';

test('a secret has its form, and no two are the same', () => {
  const secrets = Array.from({ length: 100 }, () => newSecret(systemRandom));
  for (const secret of secrets) expect(secret).toMatch(SECRET);
  expect(new Set(secrets).size).toBe(100);
});

test('the id of a key comes from its secret, and does not hold it', () => {
  const secret = newSecret(systemRandom);
  expect(keyIdOf(secret)).toMatch(/^ke-[a-z2-7]{16}$/);
  expect(keyIdOf(secret)).toBe(keyIdOf(secret));
  expect(keyIdOf(newSecret(systemRandom))).not.toBe(keyIdOf(secret));
});

test('the hash is sha256', () => {
  expect(hashOfSecret('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
});
