import { compareExactness, type Glob, type Segment, segmentMatches, type Token } from './glob.ts';

/**
 * Whether a rule with pattern `over` may decide for a path that one with `under` speaks of, too: one that it
 * names, and with `below` also one below that. Errs on the side of `true`. With the same exactness, `over`
 * wins.
 */
export function mayOverride(over: Glob, under: Glob, below = true): boolean {
  if (!headsMeet(over, under)) return false;
  const width = under.segments.length + 1;
  const seen = new Set<number>();
  const waiting: [number, number][] = [[0, 0]];
  for (let pair = waiting.pop(); pair !== undefined; pair = waiting.pop()) {
    const [i, j] = pair;
    if (seen.has(i * width + j)) continue;
    seen.add(i * width + j);
    if (j === under.segments.length && isNearer(over, i, under, below)) return true;
    waiting.push(...stepsFrom(over, i, under, j));
  }
  return false;
}

/** What most pairs end at: their literal beginnings differ. */
function headsMeet({ literal: a }: Glob, { literal: b }: Glob): boolean {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    if (a[at] !== b[at]) return false;
  }
  return true;
}

/** `under` names a path here; what is left of `over` may lead deeper, or else they name the same. */
function isNearer(over: Glob, at: number, under: Glob, below: boolean): boolean {
  if (at < over.segments.length) return below;
  return compareExactness(over, under) <= 0;
}

function stepsFrom(over: Glob, i: number, under: Glob, j: number): [number, number][] {
  const [a, b] = [over.segments[i], under.segments[j]];
  const steps: [number, number][] = [];
  if (a?.kind === 'any') steps.push([i + 1, j]);
  if (b?.kind === 'any') steps.push([i, j + 1]);
  if (a !== undefined && b !== undefined && segmentsMeet(a, b)) {
    steps.push([a.kind === 'any' ? i : i + 1, b.kind === 'any' ? j : j + 1]);
  }
  return steps;
}

/** Whether one name fits both. */
export function segmentsMeet(a: Segment, b: Segment): boolean {
  if (a.kind === 'any' || b.kind === 'any') return true;
  if (a.kind === 'literal') return segmentMatches(b, a.name);
  if (b.kind === 'literal') return segmentMatches(a, b.name);
  return tokensMeet(a.tokens, b.tokens);
}

function tokensMeet(a: readonly Token[], b: readonly Token[]): boolean {
  // reach[j]: some bytes fit the first i tokens of `a` and the first j of `b`.
  let reach = closeTokens(b, [true]);
  for (const token of a) {
    const next: boolean[] = [];
    for (let j = 0; j <= b.length; j += 1) {
      const other = b[j - 1];
      const both = reach[j - 1] === true && other !== undefined && tokenMeets(token, other);
      // A star of one side takes whatever the other side has.
      const left = token === '*' && (reach[j] === true || next[j - 1] === true);
      const right = other === '*' && reach[j] === true;
      next[j] = both || left || right;
    }
    reach = closeTokens(b, next);
  }
  return reach[b.length] === true;
}

/** A star of `b` may stand for nothing. */
function closeTokens(b: readonly Token[], reach: boolean[]): boolean[] {
  for (let j = 1; j <= b.length; j += 1) {
    reach[j] = reach[j] === true || (b[j - 1] === '*' && reach[j - 1] === true);
  }
  return reach;
}

function tokenMeets(a: Token, b: Token): boolean {
  if (typeof a === 'string' || typeof b === 'string') return true;
  return a.byte === b.byte;
}
