import type { Verb } from './document.ts';
import { mayOverride } from './glob-overlap.ts';
import type { FileRule } from './policy.ts';

/** Pairs are looked at once for all compilers and verbs. */
const kept = new WeakMap<readonly FileRule[], Map<FileRule, readonly FileRule[]>>();

/**
 * Rules that allow what this one denies, for a part of what it speaks of. May name some that do not, and
 * misses none.
 */
export function exceptionsTo(
  rule: FileRule,
  verb: Verb,
  rules: readonly FileRule[],
): readonly FileRule[] {
  const known = kept.get(rules) ?? new Map<FileRule, readonly FileRule[]>();
  kept.set(rules, known);
  const overriding =
    known.get(rule) ??
    rules.filter(
      (other) =>
        other !== rule &&
        other.denied.size < 3 &&
        mayOverride(other.glob, rule.glob, !rule.isHidden),
    );
  known.set(rule, overriding);
  return overriding.filter(({ denied }) => !denied.has(verb));
}
