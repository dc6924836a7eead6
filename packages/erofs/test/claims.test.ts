import { describe, expect, it } from 'vitest';
import { createClaims } from '../src/claims.ts';

describe('claims', () => {
  it('may touch but not overlap', () => {
    const claims = createClaims(Buffer.alloc(4096));
    claims.claim(0, 100);
    claims.claim(100, 164);
    claims.claim(1000, 3000);
    claims.claim(164, 1000);
    for (const [start, end] of [
      [0, 4],
      [96, 104],
      [160, 168],
      [2996, 3004],
      [0, 4096],
    ] as const) {
      expect(() => claims.claim(start, end)).toThrow('twice');
    }
  });

  it('stay inside', () => {
    const claims = createClaims(Buffer.alloc(64));
    for (const [start, end] of [
      [-4, 4],
      [60, 68],
      [8, 4],
      [0, Infinity],
      [NaN, 4],
    ] as const) {
      expect(() => claims.claim(start, end)).toThrow('does not have');
    }
  });

  it('leave nothing but zeros', () => {
    const bytes = Buffer.alloc(256);
    bytes[200] = 1;
    const claims = createClaims(bytes);
    claims.claim(0, 128);
    expect(() => claims.assertRestIsZero()).toThrow('byte 200');
    claims.claim(200, 204);
    claims.assertRestIsZero();
  });

  it('of odd lengths need a zero padding', () => {
    const bytes = Buffer.alloc(64);
    bytes[7] = 1;
    expect(() => createClaims(bytes).claim(0, 7)).toThrow('byte 7');
    createClaims(bytes).claim(0, 8);
  });
});
