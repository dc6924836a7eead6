/**
 * Makes any string safe to write to a terminal: control characters, C1 codes, line separators and marks that
 * change the direction of text become visible escapes (THREATS F7). Names, output and errors from a sandbox
 * go through here before a person sees them.
 */
export function escapeForTerminal(text: string): string {
  return text.replace(UNSAFE, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this pattern is for
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;
