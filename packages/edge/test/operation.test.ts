import { traceBytes } from '@dsec/edge';
import { expect, it } from 'vitest';

it('makes 25 bytes of a trace context, as the frames carry it', () => {
  const bytes = traceBytes(`00-${'0123456789abcdef'.repeat(2)}-${'fedcba9876543210'}-01`);
  expect(bytes).toHaveLength(25);
  expect(Buffer.from(bytes).toString('hex')).toBe(
    '0123456789abcdef0123456789abcdeffedcba987654321001',
  );
});
