import { DsecError } from '@dsec/std';

/**
 * Patterns of paths. A pattern is absolute and made of segments; in a segment `*` stands for any bytes (none
 * too) and `?` for one byte, but never for a slash; `**` as a whole segment stands for any number of
 * segments, none too. A backslash takes the meaning from `*`, `?` and itself. A trailing `/**` says nothing:
 * what holds for a directory holds for all below it.
 *
 * Names are bytes to the kernel, so a pattern is matched byte by byte: every string of this module holds one
 * byte in each character (`latin1`). There is no regular expression, and the cost of a match is bounded by
 * the product of the two lengths.
 */
export interface Glob {
  /** Normalised; of two with the same meaning this is the same for all that differ in a trailing `/**`. */
  readonly text: string;
  readonly segments: readonly Segment[];
  /** The segments before the first wildcard. */
  readonly literal: readonly string[];
  readonly isLiteral: boolean;
  /** Of two that name the same path, the one with less wins: see `compareExactness`. */
  readonly exactness: readonly [anyCount: number, wildCount: number, literalBytesNegated: number];
}

export type Token = { readonly byte: string } | '*' | '?';

export type Segment =
  | { readonly kind: 'literal'; readonly name: string }
  | { readonly kind: 'wild'; readonly tokens: readonly Token[] }
  /** `**` */
  | { readonly kind: 'any' };

export const GLOB_LIMITS = { bytes: 1024, segments: 48, wildcards: 16, nameBytes: 255 } as const;
export const PATH_BYTES_MAX = 4095;

/** Throws `invalid-argument`, with `field` in its details, for what is no pattern. */
export function parseGlob(text: string, field: string): Glob {
  const refuse = (why: string): never => {
    throw new DsecError('invalid-argument', `${field}: ${why}`, { details: { field } });
  };
  if (!text.startsWith('/')) refuse('a pattern is an absolute path');
  if (Buffer.from(text).toString() !== text) refuse('half of a surrogate pair');
  const bytes = Buffer.from(text).toString('latin1');
  if (bytes.length > GLOB_LIMITS.bytes) refuse(`more than ${GLOB_LIMITS.bytes} bytes`);
  if ([...bytes].some((byte) => byte < ' ' || byte === '\x7f')) refuse('a control character');
  const written = bytes.slice(1).split('/');
  // `**/**` says no more than one of them, and one at the end nothing.
  const kept = written.filter((name, at) => name !== '**' || written[at - 1] !== '**');
  if (kept.at(-1) === '**') kept.pop();
  const names = kept.length === 1 && kept[0] === '' ? [] : kept;
  if (names.length > GLOB_LIMITS.segments) refuse(`more than ${GLOB_LIMITS.segments} segments`);
  const segments = names.map((name) => parseSegment(name, refuse));
  const wildcards = segments.reduce((sum, segment) => sum + wildcardsOf(segment), 0);
  if (wildcards > GLOB_LIMITS.wildcards) refuse(`more than ${GLOB_LIMITS.wildcards} wildcards`);
  return globOf(`/${names.join('/')}`, segments);
}

function parseSegment(text: string, refuse: (why: string) => never): Segment {
  if (text === '') return refuse('an empty segment, or a slash at the end');
  if (text === '.' || text === '..') return refuse(`a segment ${text}, which is no name`);
  if (text === '**') return { kind: 'any' };
  if (text.includes('**')) return refuse('** stands alone between slashes');
  const tokens: Token[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const byte = text.charAt(at);
    if (byte === '*' || byte === '?') tokens.push(byte);
    else if (byte === '\\') tokens.push({ byte: escaped(text.charAt(++at), refuse) });
    else tokens.push({ byte });
  }
  if (tokens.length > GLOB_LIMITS.nameBytes) {
    return refuse(`a name of more than ${GLOB_LIMITS.nameBytes} bytes`);
  }
  if (tokens.some((token) => typeof token === 'string')) return { kind: 'wild', tokens };
  return { kind: 'literal', name: tokens.map(byteOf).join('') };
}

function escaped(byte: string, refuse: (why: string) => never): string {
  return ['*', '?', '\\'].includes(byte) ? byte : refuse('a backslash before another than * ? \\');
}

const byteOf = (token: Token) => (typeof token === 'string' ? '' : token.byte);

function wildcardsOf(segment: Segment): number {
  if (segment.kind === 'any') return 1;
  if (segment.kind === 'literal') return 0;
  return segment.tokens.filter((token) => token === '*').length;
}

function globOf(bytes: string, segments: readonly Segment[]): Glob {
  const firstWild = segments.findIndex(({ kind }) => kind !== 'literal');
  const head = firstWild < 0 ? segments : segments.slice(0, firstWild);
  const literalBytes = segments.reduce((sum, segment) => sum + literalBytesOf(segment), 0);
  const countOf = (kind: Segment['kind']) => segments.filter((one) => one.kind === kind).length;
  return {
    text: Buffer.from(bytes, 'latin1').toString(),
    segments,
    literal: head.flatMap((segment) => (segment.kind === 'literal' ? [segment.name] : [])),
    isLiteral: firstWild < 0,
    exactness: [countOf('any'), countOf('wild'), -literalBytes],
  };
}

function literalBytesOf(segment: Segment): number {
  if (segment.kind === 'literal') return segment.name.length;
  return segment.kind === 'any' ? 0 : segment.tokens.filter((t) => typeof t !== 'string').length;
}

/**
 * Negative when `a` wins over `b` where both name the same path: fewer `**`, then fewer segments with other
 * wildcards, then more bytes that are no wildcards.
 */
export function compareExactness(a: Glob, b: Glob): number {
  const index = a.exactness.findIndex((value, at) => value !== b.exactness[at]);
  return index < 0 ? 0 : (a.exactness[index] ?? 0) - (b.exactness[index] ?? 0);
}

/** The names on the way to an absolute path, as bytes. `invalid-argument` for what is no plain path. */
export function namesOf(path: string, field = 'path'): readonly string[] {
  const bytes = Buffer.from(path).toString('latin1');
  const names = bytes === '/' ? [] : bytes.slice(1).split('/');
  const isPlain = names.every((name) => !['', '.', '..'].includes(name) && !name.includes('\0'));
  if (!bytes.startsWith('/') || !isPlain || bytes.length > PATH_BYTES_MAX) {
    throw new DsecError(
      'invalid-argument',
      `${field}: an absolute path without empty or dotted parts, of at most ${PATH_BYTES_MAX} bytes`,
      { details: { field } },
    );
  }
  return names;
}

/** Of the paths on the way, the root and the last one too: which the pattern names, by how many names. */
export function namedDepths(glob: Glob, names: readonly string[]): readonly number[] {
  let reached = closeOver(glob, new Set([0]));
  const depths = reached.has(glob.segments.length) ? [0] : [];
  for (const [index, name] of names.entries()) {
    const next = new Set<number>();
    for (const at of reached) {
      const segment = glob.segments[at];
      if (segment === undefined || !segmentMatches(segment, name)) continue;
      next.add(segment.kind === 'any' ? at : at + 1);
    }
    if (next.size === 0) break;
    reached = closeOver(glob, next);
    if (reached.has(glob.segments.length)) depths.push(index + 1);
  }
  return depths;
}

/** `**` may stand for nothing. */
function closeOver(glob: Glob, reached: Set<number>): Set<number> {
  for (const at of reached) {
    if (glob.segments[at]?.kind === 'any') reached.add(at + 1);
  }
  return reached;
}

export function segmentMatches(segment: Segment, name: string): boolean {
  if (segment.kind === 'any') return true;
  if (segment.kind === 'literal') return segment.name === name;
  return tokensMatch(segment.tokens, name);
}

/** On a mismatch the last `*` takes one byte more: no earlier one ever has to. */
function tokensMatch(tokens: readonly Token[], name: string): boolean {
  let [at, token, star, starAt] = [0, 0, -1, 0];
  while (at < name.length) {
    const expected = tokens[token];
    if (expected === '*') {
      [star, starAt] = [token, at];
      token += 1;
    } else if (expected === '?' || (expected !== undefined && expected.byte === name[at])) {
      [at, token] = [at + 1, token + 1];
    } else if (star >= 0) {
      starAt += 1;
      [at, token] = [starAt, star + 1];
    } else {
      return false;
    }
  }
  while (tokens[token] === '*') token += 1;
  return token === tokens.length;
}
