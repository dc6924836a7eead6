import { expect, it } from 'vitest';
import { createNonceMemory } from '../src/nonce-memory.ts';

it('knows a nonce until it expires and stays within its capacity', () => {
  const memory = createNonceMemory(1000);
  let accepted = 0;
  let refused = 0;
  for (let nowMs = 0; nowMs < 100_000; nowMs += 10) {
    try {
      expect(memory.use(`n${nowMs}`, nowMs + 20_000, nowMs)).toBe(true);
      accepted += 1;
    } catch (thrown) {
      expect(thrown).toMatchObject({ code: 'overloaded' });
      refused += 1;
    }
    expect(memory.size).toBeLessThanOrEqual(1000);
  }
  expect(accepted).toBeGreaterThan(3000);
  expect(refused).toBeGreaterThan(3000);
});

it('tells how far it has forgotten', () => {
  const memory = createNonceMemory(10);
  memory.use('a', 1500, 0);
  memory.use('b', 9000, 1600);
  expect(memory.forgottenThroughMs).toBe(0);
  expect(memory.use('a', 1500, 1999)).toBe(false);
  memory.use('c', 9000, 2000);
  expect(memory.forgottenThroughMs).toBe(2000);
  expect(memory.size).toBe(2);
});
