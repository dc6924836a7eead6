import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { probeSecurity } from '../src/index.ts';

test('what policies can be enforced with is told alike each time, and as the kernel says', () => {
  const facts = probeSecurity();
  expect(probeSecurity()).toEqual(facts);
  const modules = (() => {
    try {
      return readFileSync('/sys/kernel/security/lsm', 'utf8').trim().split(',');
    } catch {
      return undefined;
    }
  })();
  if (modules === undefined) return;
  expect(facts.landlockAbi > 0).toBe(modules.includes('landlock'));
  if (!modules.includes('apparmor')) expect(facts.hasAppArmor).toBe(false);
});
