import { expect, it } from 'vitest';
import { crc32c } from '../src/crc32c.ts';

it('gives the check value of the Castagnoli polynomial once inverted', () => {
  expect(~crc32c(Buffer.from('123456789'), 0xffff_ffff) >>> 0).toBe(0xe306_9283);
});

it('goes on from a seed', () => {
  const whole = crc32c(Buffer.from('123456789'), 0xffff_ffff);
  const first = crc32c(Buffer.from('1234'), 0xffff_ffff);
  expect(crc32c(Buffer.from('56789'), first)).toBe(whole);
});
