import { MOUNT_BITS, type MountFields } from '@dsec/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BARE_FACTS,
  compileMounts,
  type PathKind,
  parsePolicy,
  resolvePolicy,
  type Verb,
} from '../src/index.ts';
import { expectKept, promisesOf } from './mechanism-check.ts';
import {
  filePolicyArbitrary,
  literalPolicyArbitrary,
  RUNS,
  SAMPLE_PATHS,
  SEED,
} from './policy-arbitraries.ts';

const policyOf = (...rules: readonly [path: string, ...access: string[]][]) =>
  resolvePolicy(
    parsePolicy({ version: 1, files: rules.map(([path, ...access]) => ({ path, access })) }),
  );

const mountsOf = (
  rules: readonly [path: string, ...access: string[]][],
  kinds: Readonly<Record<string, PathKind>> = {},
) =>
  compileMounts(policyOf(...rules), {
    ...BARE_FACTS,
    kindOf: (path) => kinds[path] ?? 'directory',
  });

const shown = (mounts: readonly MountFields[]) =>
  mounts.map(({ kind, target, flags }) => {
    const noexec = kind === 'readonly' && (flags & MOUNT_BITS.noexec) !== 0;
    return `${kind}${noexec ? ' noexec' : ''} ${Buffer.from(target)}`;
  });

/** As a sandbox would find it: the mount that was made last decides, of those on the way to a path. */
function denies(mounts: readonly MountFields[], path: string, verb: Verb): boolean {
  const on = mounts.findLast(({ target }) => `${path}/`.startsWith(`${Buffer.from(target)}/`));
  if (on === undefined) return false;
  if (on.kind === 'mask' || verb === 'write') return true;
  return verb === 'exec' && (on.flags & MOUNT_BITS.noexec) !== 0;
}

describe('mounts of a policy', () => {
  it('cover, or make read-only, the outer ones first', () => {
    const { output, notEnforced } = mountsOf([
      ['/a/b/secret', 'hide'],
      ['/usr', 'read', 'exec'],
      ['/a', 'read'],
    ]);
    expect(shown(output)).toEqual(['readonly /usr', 'readonly noexec /a', 'mask /a/b/secret']);
    expect(notEnforced).toEqual([]);
  });

  it.each<[string, [string, ...string[]][], string]>([
    ['a pattern', [['/**/conftest.py', 'hide']], 'a mount knows no pattern'],
    [
      'an exception',
      [
        ['/usr', 'read'],
        ['/usr/x', 'read', 'write'],
      ],
      'another rule allows a part',
    ],
    ['a closed tree with an exception', [['/a'], ['/a/b', 'read', 'write']], 'another rule allows'],
    ['reading alone', [['/log', 'write']], 'takes all, or writing'],
    ['the root', [['/', 'read', 'exec']], 'the platform has mounts there'],
    ['/dev', [['/dev', 'read']], 'the platform has mounts there'],
    ['a link', [['/link/x', 'read']], 'a link in this image'],
  ])('cannot say %s, and say why', (_, rules, why) => {
    const { notEnforced } = mountsOf(rules, { '/link': 'link' });
    expect(notEnforced[0]?.why).toContain(why);
    expect(notEnforced[0]?.by).toBe('mounts');
  });

  it('what exec alone forbids, in a place to write, has no mount', () => {
    expect(mountsOf([['/data', 'read', 'write']]).output).toEqual([]);
  });

  it('nothing is made below a mask, or below what is read-only', () => {
    const rules: [string, ...string[]][] = [
      ['/a', 'hide'],
      ['/a/b', 'hide'],
      ['/ro', 'read', 'exec'],
      ['/ro/gone', 'hide'],
      ['/ro/there', 'hide'],
    ];
    const { output, notEnforced } = mountsOf(rules, { '/ro/gone': 'absent' });
    expect(shown(output)).toEqual(['mask /a', 'readonly /ro', 'mask /ro/there']);
    expect(notEnforced).toEqual([]);
  });

  it('the tools of the platform are read-only already', () => {
    const policy = policyOf(['/.dsec', 'read', 'exec']);
    const { output, enforced } = compileMounts(policy, { ...BARE_FACTS, hasToolMount: true });
    expect(output).toEqual([]);
    expect(enforced[0]).toMatchObject({ verbs: ['write'], by: 'mounts' });
    expect(shown(compileMounts(policy, BARE_FACTS).output)).toEqual(['readonly /.dsec']);
  });

  it('are bounded, and the rest is told', () => {
    const rules = Array.from({ length: 60 }, (_, index): [string, string] => [
      `/d${index}`,
      'hide',
    ]);
    const { output, notEnforced } = mountsOf(rules);
    expect(output).toHaveLength(48);
    expect(notEnforced).toHaveLength(12);
    expect(notEnforced[0]?.why).toContain('more than 48 mounts');
  });

  it('deny what they say and nothing else', () => {
    let promises = 0;
    const property = fc.property(
      fc.oneof(filePolicyArbitrary, literalPolicyArbitrary),
      (policy) => {
        const compiled = compileMounts(policy, BARE_FACTS);
        promises += promisesOf(compiled);
        expectKept(policy, compiled, (path, verb) => denies(compiled.output, path, verb));
      },
    );
    fc.assert(property, { seed: SEED, numRuns: RUNS / 2 });
    expect(promises).toBeGreaterThan(RUNS / 4);
    expect(SAMPLE_PATHS.length).toBeGreaterThan(300);
  }, 60_000);
});
