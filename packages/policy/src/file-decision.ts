import type { Verb } from './document.ts';
import { compareExactness, namedDepths, namesOf } from './glob.ts';
import type { FileRule, Policy } from './policy.ts';

/**
 * The rule that decides for a path. On the way from the root to it, each directory that some rule names is
 * decided anew, and so is the path itself; the last decision holds. Of rules that name the same path, the one
 * with the fewest wildcards decides (`compareExactness`), and then the last. What is hidden stays hidden: no
 * rule decides anew below. Without any rule, everything is allowed.
 */
export function decidingRule(files: readonly FileRule[], path: string): FileRule | undefined {
  const names = namesOf(path);
  const byDepth: (FileRule | undefined)[] = [];
  for (const rule of files) {
    for (const depth of namedDepths(rule.glob, names)) {
      const best = byDepth[depth];
      if (best === undefined || wins(rule, best)) byDepth[depth] = rule;
    }
  }
  const decided = byDepth.filter((rule) => rule !== undefined);
  return decided.find(({ isHidden }) => isHidden) ?? decided.at(-1);
}

/** Of two rules that name the same path. */
export function wins(a: FileRule, b: FileRule): boolean {
  const exactness = compareExactness(a.glob, b.glob);
  return exactness === 0 ? a.order > b.order : exactness < 0;
}

export function isFileAllowed(policy: Policy, path: string, verb: Verb): boolean {
  return decidingRule(policy.files, path)?.denied.has(verb) !== true;
}
