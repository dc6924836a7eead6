import type { Glob } from './glob.ts';

/**
 * Every path that a set of patterns can tell apart, one of each kind: the patterns as one automaton over
 * bytes, walked breadth first.
 */

type Step = { readonly byte: string } | '?' | '*' | '/' | 'any' | 'any-inside';

export interface PathSpace {
  readonly start: readonly number[];
  /** Bytes that lead to different places from here, one of each kind. Not the slash. */
  bytesFrom(places: readonly number[]): readonly string[];
  /** Where the patterns may be after one byte more. */
  next(places: readonly number[], byte: string): readonly number[];
  /** The patterns, by their index, that name exactly the path that leads here. */
  named(places: readonly number[]): readonly number[];
}

export function pathSpaceOf(globs: readonly Glob[]): PathSpace {
  const steps: (Step | { readonly end: number })[] = [];
  const starts = globs.map((glob, index) => {
    const start = steps.length;
    steps.push(...stepsOf(glob), { end: index });
    return start;
  });
  const closed = (places: Iterable<number>) => close(steps, places);
  const other = unnamedByte(steps);
  return {
    start: closed(starts),
    bytesFrom(places) {
      const named = places.flatMap((place) => byteOf(steps[place]));
      return [...new Set([...named, ...other])];
    },
    next(places, byte) {
      const reached = new Set<number>();
      for (const place of places) {
        for (const to of after(steps[place], place, byte)) reached.add(to);
      }
      return closed(reached);
    },
    named: (places) =>
      places.flatMap((place) => {
        const step = steps[place];
        return typeof step === 'object' && 'end' in step ? [step.end] : [];
      }),
  };
}

function stepsOf(glob: Glob): Step[] {
  return glob.segments.flatMap((segment): Step[] => {
    if (segment.kind === 'any') return ['any', 'any-inside'];
    if (segment.kind === 'wild') return ['/', ...segment.tokens];
    return ['/', ...[...segment.name].map((byte) => ({ byte }))];
  });
}

function after(
  step: Step | { readonly end: number } | undefined,
  place: number,
  byte: string,
): readonly number[] {
  if (byte === '/') {
    if (step === '/') return [place + 1];
    return step === 'any' ? [place + 1] : [];
  }
  if (step === '?') return [place + 1];
  if (step === '*') return [place];
  // Behind each byte of a name, the name may be at its end.
  if (step === 'any-inside') return [place, place - 1];
  const fits = typeof step === 'object' && 'byte' in step && step.byte === byte;
  return fits ? [place + 1] : [];
}

/** A star, and `**`, may stand for nothing. In order, each once. */
function close(steps: readonly (Step | { end: number })[], places: Iterable<number>): number[] {
  const all = new Set(places);
  for (const place of all) {
    if (steps[place] === '*') all.add(place + 1);
    if (steps[place] === 'any') all.add(place + 2);
  }
  return [...all].sort((a, b) => a - b);
}

function byteOf(step: Step | { readonly end: number } | undefined): readonly string[] {
  return typeof step === 'object' && 'byte' in step ? [step.byte] : [];
}

/** One that no pattern names; none when they name all. */
function unnamedByte(steps: readonly (Step | { readonly end: number })[]): readonly string[] {
  const named = new Set(steps.flatMap(byteOf));
  for (let code = 0; code < 256; code += 1) {
    // Beginning with x, so that examples look like names.
    const byte = String.fromCharCode((code + 120) % 256);
    if (byte !== '/' && byte !== '\0' && byte !== '.' && !named.has(byte)) return [byte];
  }
  return [];
}
