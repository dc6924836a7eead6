import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BARE_FACTS,
  compileLandlock,
  LANDLOCK_BITS,
  type LandlockRuleset,
  parsePolicy,
  resolvePolicy,
  type Verb,
} from '../src/index.ts';
import { expectKept, promisesOf } from './mechanism-check.ts';
import { filePolicyArbitrary, literalPolicyArbitrary, RUNS, SEED } from './policy-arbitraries.ts';

const FACTS = { ...BARE_FACTS, landlockAbi: 7 };

const policyOf = (...rules: readonly [path: string, ...access: string[]][]) =>
  resolvePolicy(
    parsePolicy({ version: 1, files: rules.map(([path, ...access]) => ({ path, access })) }),
  );

const BIT: Readonly<Record<Verb, number>> = {
  read: LANDLOCK_BITS.readFile,
  write: LANDLOCK_BITS.writeFile,
  exec: LANDLOCK_BITS.execute,
};

/** As the kernel judges: what is handled is denied, unless a rule on the way to the path grants it. */
function denies(ruleset: LandlockRuleset | undefined, path: string, verb: Verb): boolean {
  if (ruleset === undefined || (ruleset.handledAccess & BIT[verb]) === 0) return false;
  return !ruleset.rules.some(
    (rule) =>
      (rule.access & BIT[verb]) !== 0 &&
      (rule.path === '/' || `${path}/`.startsWith(`${rule.path}/`)),
  );
}

describe('a Landlock ruleset', () => {
  const workplace = policyOf(
    ['/', 'read', 'exec'],
    ['/work', 'read', 'write', 'exec'],
    ['/tmp', 'read', 'write'],
  );

  it('grants trees from nothing', () => {
    const { output, notEnforced } = compileLandlock(workplace, FACTS);
    expect(output?.rules.map(({ path }) => path)).toEqual(['/work', '/tmp']);
    const handled = output?.handledAccess ?? 0;
    expect(handled & LANDLOCK_BITS.writeFile).not.toBe(0);
    expect(handled & LANDLOCK_BITS.truncate).not.toBe(0);
    expect(handled & (LANDLOCK_BITS.readFile | LANDLOCK_BITS.execute)).toBe(0);
    // /tmp denies exec inside what the root allows.
    expect(notEnforced).toMatchObject([
      { verbs: ['exec'], rule: { source: { field: 'files.2' } } },
    ]);
  });

  it('never takes moving between directories without granting it where writing is allowed', () => {
    const { output } = compileLandlock(workplace, FACTS);
    expect((output?.rules[0]?.access ?? 0) & LANDLOCK_BITS.refer).not.toBe(0);
    const readers = policyOf(['/', 'write'], ['/lib', 'read', 'write', 'exec']);
    const { output: reading } = compileLandlock(readers, FACTS);
    expect(reading?.rules.find(({ path }) => path === '/')?.access).toBe(LANDLOCK_BITS.refer);
  });

  it.each([
    [0, 'this node has no Landlock'],
    [2, 'Landlock of version 2; it takes 3'],
  ])('of version %i is not used', (landlockAbi, why) => {
    const { output, enforced, notEnforced } = compileLandlock(workplace, { ...FACTS, landlockAbi });
    expect(output).toBeUndefined();
    expect(enforced).toEqual([]);
    expect(new Set(notEnforced.map((gap) => gap.why))).toEqual(new Set([why]));
  });

  it('cannot deny inside what it grants, and says so', () => {
    const policy = policyOf(['/', 'read', 'exec'], ['/w', 'read', 'write'], ['/w/keep', 'read']);
    const { notEnforced } = compileLandlock(policy, FACTS);
    const why = notEnforced.find(({ verbs }) => verbs?.includes('write'))?.why;
    expect(why).toBe('inside /w, which is granted whole');
  });

  it('denies what it says and nothing else', () => {
    let promises = 0;
    const property = fc.property(
      fc.oneof(filePolicyArbitrary, literalPolicyArbitrary),
      (policy) => {
        const compiled = compileLandlock(policy, FACTS);
        promises += promisesOf(compiled);
        expectKept(policy, compiled, (path, verb) => denies(compiled.output, path, verb));
      },
    );
    fc.assert(property, { seed: SEED, numRuns: RUNS });
    expect(promises).toBeGreaterThan(RUNS / 10);
  }, 60_000);
});
