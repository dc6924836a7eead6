import { escapeForTerminal } from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

/** What a terminal may act on, or what turns the direction of a line. */
const isUnsafe = (point: number): boolean =>
  point < 0x20 ||
  (point >= 0x7f && point <= 0x9f) ||
  point === 0x61c ||
  point === 0x200e ||
  point === 0x200f ||
  (point >= 0x2028 && point <= 0x202e) ||
  (point >= 0x2066 && point <= 0x2069) ||
  point === 0xfeff;

describe('escapeForTerminal', () => {
  it('leaves nothing that a terminal would act on, and everything else', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const expected = [...text].map((character) => {
          const point = character.codePointAt(0) ?? 0;
          return isUnsafe(point) ? `\\u{${point.toString(16)}}` : character;
        });
        expect(escapeForTerminal(text)).toBe(expected.join(''));
      }),
      { seed: 1, numRuns: 1000 },
    );
  });

  it('escapes every unsafe character there is', () => {
    for (let point = 0; point <= 0xffff; point++) {
      if (point >= 0xd800 && point <= 0xdfff) continue;
      const escaped =
        escapeForTerminal(String.fromCodePoint(point)) !== String.fromCodePoint(point);
      expect(escaped).toBe(isUnsafe(point));
    }
  });

  it.each([
    ['\x1b]0;owned\x07', '\\u{1b}]0;owned\\u{7}'],
    ['\x9b31m', '\\u{9b}31m'],
    ['a\r\nb\tc', 'a\\u{d}\\u{a}b\\u{9}c'],
    ['\u202etxt.exe', '\\u{202e}txt.exe'],
    ['naïve 文字 🎈', 'naïve 文字 🎈'],
  ])('%j', (text, expected) => {
    expect(escapeForTerminal(text)).toBe(expected);
  });
});
