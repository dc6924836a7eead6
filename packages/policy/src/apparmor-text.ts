/** Patterns as AppArmor writes them. Text is one byte in each character, as in `glob.ts`. */
import type { Glob, Token } from './glob.ts';

const SPECIAL: ReadonlySet<string> = new Set([...'*?[]{}^,\\"@']);

/** Bytes that stand for themselves. Within quotes AppArmor takes all others as they are. */
export const escapeBytes = (bytes: string): string =>
  [...bytes].map((byte) => (SPECIAL.has(byte) ? `\\${byte}` : byte)).join('');

/** What the pattern names, with all below: the file, the directory (with its slash), what is in it. */
export function treePattern(glob: Glob): string {
  let text = '';
  for (const segment of glob.segments) {
    // Names any number of directories, each with its slash.
    if (segment.kind === 'any') text += '/{,**/}';
    else text += (text.endsWith('/}') ? '' : '/') + segmentText(segment);
  }
  return withBelow(text);
}

function segmentText(segment: Exclude<Glob['segments'][number], { kind: 'any' }>): string {
  if (segment.kind === 'literal') return escapeBytes(segment.name);
  // AppArmor's star may stand for nothing, which would name the directory above.
  if (segment.tokens.every((token) => token === '*')) return '?*';
  return segment.tokens.map(tokenText).join('');
}

const tokenText = (token: Token): string =>
  typeof token === 'string' ? token : escapeBytes(token.byte);

export const withBelow = (pattern: string): string =>
  pattern === '' ? '/{,**}' : `${pattern}{,/,/**}`;

/** In quotes. A profile is a string of characters again. */
export const quoted = (pattern: string): string => `"${Buffer.from(pattern, 'latin1').toString()}"`;
