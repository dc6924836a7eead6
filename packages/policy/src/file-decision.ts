import type { Verb } from './document.ts';
import { compareExactness, deepestNamed, namesOf } from './glob.ts';
import type { FileRule, Policy } from './policy.ts';

/**
 * The rule that decides for a path: the one whose pattern names the nearest directory above it, or the path
 * itself. Of those, the one with the fewest wildcards (`compareExactness`), and then the last. Without any,
 * everything is allowed.
 */
export function decidingRule(files: readonly FileRule[], path: string): FileRule | undefined {
  const names = namesOf(path);
  let best: { readonly rule: FileRule; readonly depth: number } | undefined;
  for (const rule of files) {
    const depth = deepestNamed(rule.glob, names);
    if (depth < 0) continue;
    if (best === undefined || depth > best.depth || (depth === best.depth && wins(rule, best.rule)))
      best = { rule, depth };
  }
  return best?.rule;
}

/** Of two rules that name the same path. */
export function wins(a: FileRule, b: FileRule): boolean {
  const exactness = compareExactness(a.glob, b.glob);
  return exactness === 0 ? a.order > b.order : exactness < 0;
}

export function isFileAllowed(policy: Policy, path: string, verb: Verb): boolean {
  return decidingRule(policy.files, path)?.denied.has(verb) !== true;
}
