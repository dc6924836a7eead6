import { bytesOfPath, bytesOfText, textOfBytes } from '@dsec/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';

const invalid = expect.objectContaining({ code: 'invalid-argument', details: { field: 'path' } });

test('any bytes come back through text or base64', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array(),
        fc.string().map((s) => Buffer.from(s)),
      ),
      (bytes) => {
        const { text, base64 } = textOfBytes(bytes);
        const input = base64 === undefined ? { text } : { base64 };
        expect(bytesOfText(input, 'x', 1000).equals(bytes)).toBe(true);
      },
    ),
    { seed: 4, numRuns: 1000 },
  );
});

test('UTF-8 stays text, a byte order mark included; other bytes get both forms', () => {
  expect(textOfBytes(Buffer.from('\ufeffé✓'))).toEqual({ text: '\ufeffé✓' });
  expect(textOfBytes(Buffer.from([0x61, 0xff]))).toEqual({ text: 'a\ufffd', base64: 'Yf8=' });
  expect(textOfBytes(Buffer.from('a\0'))).toEqual({ text: 'a\0', base64: 'YQA=' });
});

test.each([
  ['neither form', {}],
  ['both forms', { text: 'a', base64: 'YQ==' }],
  ['base64 without padding', { base64: 'YQ' }],
  ['base64 of the URL alphabet', { base64: '_-8=' }],
  ['base64 with stray bits', { base64: 'YR==' }],
  ['base64 with white space', { base64: 'YQ==\n' }],
  ['a lone surrogate', { text: '\udc00' }],
  ['too many bytes', { text: '✓✓' }],
])('an input with %s is refused', (_, input) => {
  expect(() => bytesOfText(input, 'path', 5)).toThrow(invalid);
});

test('a path is not empty and holds no NUL', () => {
  expect(bytesOfPath({ text: '/a' }, 'path', 10)).toEqual(Buffer.from('/a'));
  expect(() => bytesOfPath({ text: '' }, 'path', 10)).toThrow(invalid);
  expect(() => bytesOfPath({ base64: 'YQA=' }, 'path', 10)).toThrow(invalid);
});
