import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BARE_FACTS,
  BUILTIN_PROFILES,
  compileAppArmor,
  otherNames,
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

const FACTS = { ...BARE_FACTS, hasAppArmor: true };

const policyOf = (...rules: readonly [path: string, ...access: string[]][]) =>
  resolvePolicy(
    parsePolicy({ version: 1, files: rules.map(([path, ...access]) => ({ path, access })) }),
  );

const textOf = (policy: ReturnType<typeof policyOf>) =>
  compileAppArmor(policy, FACTS).output?.text ?? '';

interface Line {
  readonly pattern: string;
  readonly letters: string;
}

const denialsOf = (text: string): Line[] =>
  [...text.matchAll(/^ {2}audit deny "(.*)" ([a-z]+),$/gm)].map(
    ([, pattern = '', letters = '']) => ({
      pattern,
      letters,
    }),
  );

/** As AppArmor's own translation does: checked against it below. */
function regexOf(pattern: string): RegExp {
  let source = '';
  for (let at = 0; at < pattern.length; at += 1) {
    const byte = pattern.charAt(at);
    if (byte === '\\') source += `\\${pattern.charAt(++at)}`;
    else if (pattern.startsWith('**', at)) [source, at] = [`${source}.*`, at + 1];
    else if (byte === '*') source += '[^/]*';
    else if (byte === '?') source += '[^/]';
    else if (byte === '{') source += '(';
    else if (byte === '}') source += ')';
    else if (byte === ',') source += '|';
    else source += '.+$()|'.includes(byte) ? `\\${byte}` : byte;
  }
  return new RegExp(`^${source}$`, 's');
}

const LETTER: Readonly<Record<Verb, string>> = { read: 'r', write: 'w', exec: 'x' };

const judgeOf = (text: string) => {
  const lines = denialsOf(text).map(({ pattern, letters }) => ({
    regex: regexOf(pattern),
    letters,
  }));
  return (path: string, verb: Verb) =>
    lines.some(({ regex, letters }) => letters.includes(LETTER[verb]) && regex.test(path));
};

const parser = ['/usr/sbin/apparmor_parser', '/sbin/apparmor_parser'].find(
  (path) => spawnSync(path, ['--version']).status === 0,
);

describe('an AppArmor profile', () => {
  it('denies a tree, and that the way to it is renamed', () => {
    const { output, notEnforced } = compileAppArmor(
      policyOf(['/opt/grader/answers', 'hide']),
      FACTS,
    );
    expect(denialsOf(output?.text ?? '')).toEqual([
      { pattern: '/opt/', letters: 'wkl' },
      { pattern: '/opt/grader/', letters: 'wkl' },
      { pattern: '/opt/grader/answers{,/,/**}', letters: 'rkwlmx' },
    ]);
    expect(notEnforced).toEqual([]);
  });

  it('is named by what it says', () => {
    const [one, same, other] = [
      ['/a', 'hide'],
      ['/a/**', 'hide'],
      ['/b', 'hide'],
    ].map(([path = '', access = '']) => compileAppArmor(policyOf([path, access]), FACTS).output);
    expect(one?.name).toMatch(/^dsec-[0-9a-f]{32}$/);
    expect(one).toEqual(same);
    expect(one?.name).not.toBe(other?.name);
    expect(one?.text).toContain(`profile ${one?.name} `);
  });

  it('escapes what would be a pattern, and stays in its quotes', () => {
    const text = textOf(policyOf(['/a"b, rwx,\\\\ {x,y}[z]^@{HOME}/\\*', 'hide']));
    expect(denialsOf(text).at(-1)?.pattern).toBe(
      '/a\\"b\\, rwx\\,\\\\ \\{x\\,y\\}\\[z\\]\\^\\@\\{HOME\\}/\\*{,/,/**}',
    );
  });

  it('leaves exceptions out of what it denies', () => {
    const policy = policyOf(['/usr', 'read', 'exec'], ['/usr/local', 'read', 'write', 'exec']);
    const denies = judgeOf(textOf(policy));
    expect(denies('/usr', 'write')).toBe(true);
    expect(denies('/usr/', 'write')).toBe(true);
    expect(denies('/usr/loc', 'write')).toBe(true);
    expect(denies('/usr/locals/x', 'write')).toBe(true);
    expect(denies('/usr/local', 'write')).toBe(false);
    expect(denies('/usr/local/', 'write')).toBe(false);
    expect(denies('/usr/local/bin/x', 'write')).toBe(false);
  });

  it.each<[string, [string, ...string[]][], string]>([
    ['an exception that is a pattern', [['/a'], ['/a/*.txt', 'read']], 'have no exceptions'],
    [
      'an exception in a pattern',
      [
        ['/*', 'read'],
        ['/a/b', 'read', 'write'],
      ],
      'have no exceptions',
    ],
    [
      'an exception with unusual bytes',
      [
        ['/a', 'read'],
        ['/a/é', 'read', 'write'],
      ],
      'have no exceptions',
    ],
    ['a wildcard on the way', [['/home/*/.ssh', 'hide']], 'can be renamed'],
  ])('cannot say %s, and says why', (_, rules, why) => {
    const { notEnforced } = compileAppArmor(policyOf(...rules), FACTS);
    expect(notEnforced[0]?.why).toContain(why);
  });

  it('spells all names but some', () => {
    const regexes = otherNames(['work', 'word', 'w', 'tmp-x']).map(regexOf);
    const fits = (name: string) => regexes.some((regex) => regex.test(name));
    for (const name of ['work', 'word', 'w', 'tmp-x', '']) expect(fits(name), name).toBe(false);
    for (const name of [
      'wor',
      'worx',
      'works',
      'wo',
      'x',
      'tmp-',
      'tmp',
      't',
      'tmp-xy',
      'é',
      '-',
    ]) {
      expect(fits(name), name).toBe(true);
    }
  });

  it('denies what it says and nothing else, files as directories', () => {
    let promises = 0;
    const property = fc.property(
      fc.oneof(filePolicyArbitrary, literalPolicyArbitrary),
      (policy) => {
        const compiled = compileAppArmor(policy, FACTS);
        promises += promisesOf(compiled);
        const denies = judgeOf(compiled.output?.text ?? '');
        expectKept(policy, compiled, denies);
        // A directory is never allowed more; its own name may be denied, so that it stays in place.
        expectKept(policy, compiled, (path, verb) =>
          verb === 'write' ? denies(path, verb) : denies(path === '/' ? '/' : `${path}/`, verb),
        );
      },
    );
    fc.assert(property, { seed: SEED, numRuns: RUNS / 4 });
    expect(promises).toBeGreaterThan(RUNS / 4);
  }, 120_000);

  it.skipIf(parser === undefined)(
    'is accepted by apparmor_parser, which reads patterns alike (needs apparmor_parser)',
    () => {
      const profiles = [
        ...fc.sample(filePolicyArbitrary, { seed: SEED, numRuns: 12 }),
        ...fc.sample(literalPolicyArbitrary, { seed: SEED, numRuns: 12 }),
        ...Object.values(BUILTIN_PROFILES).map((profile) => resolvePolicy(profile)),
        policyOf(['/a"b, rwx,\\\\ {x,y}[z]^@{HOME} #$()|+!~<>=&;\'`é/\\*\\?', 'hide']),
      ].map(textOf);
      const directory = mkdtempSync(join(tmpdir(), 'dsec-apparmor-'));
      try {
        const files = [...new Set(profiles)].map((text, index) => {
          const file = join(directory, `profile-${index}`);
          writeFileSync(file, text);
          return file;
        });
        const run = spawnSync(parser ?? '', ['-QK', '-j1', '-D', 'rule-exprs', ...files], {
          encoding: 'utf8',
          maxBuffer: 1 << 26,
        });
        expect(run.status, run.stderr.slice(-1000)).toBe(0);
        const dump = `${run.stdout}${run.stderr}`;
        const theirs = new Map(
          [...dump.matchAll(/^aare: (\/.*?) {3}-> {3}(.*)$/gm)].map(([, from = '', to = '']) => [
            from,
            to,
          ]),
        );
        const patterns = new Set(profiles.flatMap(denialsOf).map(({ pattern }) => pattern));
        let compared = 0;
        for (const pattern of patterns) {
          const source = theirs.get(pattern);
          if (source === undefined) continue;
          compared += 1;
          const [own, parsed] = [regexOf(pattern), new RegExp(`^${source}$`, 's')];
          const differ = SAMPLE_PATHS.flatMap((path) => [path, `${path}/`]).filter(
            (path) => own.test(path) !== parsed.test(path),
          );
          expect(differ.slice(0, 3), `${pattern} is ${source}`).toEqual([]);
        }
        expect(compared).toBeGreaterThan(20);
      } finally {
        rmSync(directory, { recursive: true });
      }
    },
    60_000,
  );
});
