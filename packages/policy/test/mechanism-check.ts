/** What every compiler of file rules promises, checked on every path of a sample. */
import { expect } from 'vitest';
import { type Compiled, decidingRule, type Policy, VERBS, type Verb } from '../src/index.ts';
import { SAMPLE_PATHS } from './policy-arbitraries.ts';

/**
 * Never more is denied than the policy denies; and where a rule decides and its denial is said to be
 * enforced, it is.
 */
export function expectKept(
  policy: Policy,
  { enforced }: Pick<Compiled<unknown>, 'enforced'>,
  denies: (path: string, verb: Verb) => boolean,
  paths: readonly string[] = SAMPLE_PATHS,
): void {
  const promised = new Set(
    enforced.flatMap(({ rule, verbs = [] }) => verbs.map((verb) => `${rule.source.field} ${verb}`)),
  );
  const wrong = paths.flatMap((path) => {
    const rule = decidingRule(policy.files, path);
    return VERBS.flatMap((verb) => {
      const isDenied = denies(path, verb);
      const isMeant = rule?.denied.has(verb) === true;
      if (isDenied && !isMeant) return [`${verb} ${path} is denied and should not be`];
      const isPromised = isMeant && promised.has(`${rule?.source.field} ${verb}`);
      return isPromised && !isDenied ? [`${verb} ${path} should be denied and is not`] : [];
    });
  });
  const rules = policy.files.map(
    ({ glob, denied }) => `${glob.text} denies ${[...denied].join(' ')}`,
  );
  expect(wrong.slice(0, 3), rules.join('; ')).toEqual([]);
}

/** How many denials of files are enforced: a check on what could keep all promises by making none. */
export const promisesOf = ({ enforced }: Pick<Compiled<unknown>, 'enforced'>): number =>
  enforced.reduce((sum, { verbs = [] }) => sum + verbs.length, 0);
