import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BARE_FACTS,
  explainPolicy,
  type FileRule,
  isFileAllowed,
  mayOverride,
  namedDepths,
  namesOf,
  parseGlob,
  parsePolicy,
  resolvePolicy,
  VERBS,
  wins,
} from '../src/index.ts';
import {
  filePolicyArbitrary,
  naiveIsAllowed,
  pathArbitrary,
  patternArbitrary,
  RUNS,
  SEED,
} from './policy-arbitraries.ts';

const policyOf = (...rules: readonly [path: string, ...access: string[]][]) =>
  resolvePolicy(
    parsePolicy({ version: 1, files: rules.map(([path, ...access]) => ({ path, access })) }),
  );

describe('which rule decides', () => {
  const policy = policyOf(
    ['/usr', 'read', 'exec'],
    ['/usr/local/**', 'read', 'write', 'exec'],
    ['/**/conftest.py', 'hide'],
    ['/usr/local/*', 'read'],
    ['/work/keep/conftest.py', 'read'],
    ['/answers', 'hide'],
    ['/**/README', 'read'],
    ['/private'],
    ['/private/mine', 'read', 'write'],
  );

  it.each([
    ['/etc/passwd', 'write', true],
    ['/usr/bin/env', 'write', false],
    ['/usr/bin/env', 'exec', true],
    ['/usr/local', 'write', true],
    ['/usr/local/bin/x', 'write', false],
    ['/work/a/conftest.py', 'read', false],
    ['/work/a/conftest.py/below', 'read', false],
    ['/work/keep/conftest.py', 'read', true],
    ['/work/keep/conftest.py', 'write', false],
    ['/work/README', 'read', true],
    ['/answers/README', 'read', false],
    ['/private/x', 'read', false],
    ['/private/mine/x', 'write', true],
    ['/private/README', 'read', true],
  ] as const)('%s %s: %s', (path, verb, expected) => {
    expect(isFileAllowed(policy, path, verb)).toBe(expected);
  });

  it('is the one that a second way to judge finds, and explain says the same', () => {
    const property = fc.property(filePolicyArbitrary, pathArbitrary, (random, path) => {
      const answers = explainPolicy(random, BARE_FACTS, { path });
      for (const [index, verb] of VERBS.entries()) {
        const expected = naiveIsAllowed(random, path, verb);
        expect(isFileAllowed(random, path, verb)).toBe(expected);
        expect(answers[index]?.verdict).toBe(expected ? 'allow' : 'deny');
      }
    });
    fc.assert(property, { seed: SEED, numRuns: RUNS * 2 });
  });
});

const RULE: Omit<FileRule, 'glob' | 'order'> = {
  denied: new Set(),
  isHidden: false,
  source: { origin: 'policy', field: 'files.0' },
};

describe('whether one rule may decide inside another', () => {
  it.each([
    ['/a/b', '/a', true],
    ['/a', '/a/b', false],
    ['/a/*', '/a/b', false],
    ['/a/b', '/a/*', true],
    ['/**/x', '/a', true],
    ['/a', '/**/x', false],
    ['/x/a', '/**/x', true],
    ['/b', '/a', false],
    ['/a*/c', '/*b', true],
    ['/a*/c', '/b*', false],
  ])('%s in %s: %s', (over, under, expected) => {
    expect(mayOverride(parseGlob(over, 'over'), parseGlob(under, 'under'))).toBe(expected);
  });

  it('is never denied where it does', () => {
    const property = fc.property(
      fc.tuple(patternArbitrary, patternArbitrary, pathArbitrary),
      ([over, under, path]) => {
        const [a, b] = [parseGlob(over, 'a'), parseGlob(under, 'b')];
        const names = namesOf(path);
        const [depthA, depthB] = [a, b].map((glob) => namedDepths(glob, names).at(-1));
        if (depthA === undefined || depthB === undefined) return;
        const [ruleA, ruleB] = [a, b].map((glob, index) => ({ ...RULE, glob, order: 1 - index }));
        if (ruleA === undefined || ruleB === undefined) return;
        const decides = depthA > depthB || (depthA === depthB && wins(ruleA, ruleB));
        if (decides) expect(mayOverride(a, b), `${over} in ${under} at ${path}`).toBe(true);
      },
    );
    fc.assert(property, { seed: SEED, numRuns: RUNS * 10 });
  });
});
