/** Rulesets that the policy compiler makes, as this kernel enforces them on a process. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { probeSecurity } from '@dsec/linux';
import {
  BARE_FACTS,
  compileLandlock,
  LANDLOCK_FILE_BITS,
  type Policy,
  parsePolicy,
  resolvePolicy,
} from '@dsec/policy';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectKept, promisesOf } from '../../packages/policy/test/mechanism-check.ts';

const SCRIPT = fileURLToPath(new URL('policy-landlock.py', import.meta.url));
const { landlockAbi } = probeSecurity();
const EACCES = 13;
const NAMES = ['a', 'b', 'ab'];

type Asked = readonly [verb: string, path: string];
type Rule = readonly [path: string, ...access: string[]];

function run(policy: Policy, asked: readonly Asked[]): readonly number[] {
  const { output } = compileLandlock(policy, { ...BARE_FACTS, landlockAbi });
  if (output === undefined) throw new Error('the policy has a ruleset');
  const input = {
    handled: output.handledAccess,
    fileBits: LANDLOCK_FILE_BITS,
    rules: output.rules.map(({ path, access }) => [path, access]),
    asked,
  };
  const { status, stdout, stderr } = spawnSync('/usr/bin/python3', [SCRIPT], {
    input: JSON.stringify(input),
    encoding: 'utf8',
  });
  expect(status, stderr).toBe(0);
  return JSON.parse(stdout);
}

describe.skipIf(landlockAbi < 3)('Landlock rulesets (needs Landlock of version 3)', () => {
  let root = '';
  const files = NAMES.flatMap((one) => NAMES.map((two) => `/${one}/${two}/f`));

  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'dsec-policy-'));
    for (const file of files) {
      mkdirSync(join(root, file, '..'), { recursive: true });
      writeFileSync(join(root, file), 'text');
    }
    copyFileSync('/usr/bin/true', join(root, 'a/true'));
    copyFileSync('/usr/bin/true', join(root, 'b/true'));
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  const policyOf = (...rules: readonly Rule[]) =>
    resolvePolicy(
      parsePolicy({ version: 1, files: rules.map(([path, ...access]) => ({ path, access })) }),
    );

  it('writing is allowed where it is said, and nowhere else, by any way', () => {
    const policy = policyOf(
      ['/', 'read', 'exec'],
      [`${root}/a`, 'read', 'write', 'exec'],
      [`${root}/b/b`, 'read', 'write'],
    );
    const asked: Asked[] = [
      ['read', `${root}/b/a/f`],
      ['write', `${root}/b/a/f`],
      ['truncate', `${root}/b/a/f`],
      [`${root}/a/moved`, `${root}/b/a/f`],
      ['write', `${root}/a/a/f`],
      ['truncate', `${root}/a/b/f`],
      [`${root}/a/b/g`, `${root}/a/a/f`],
      [`${root}/b/b/g`, `${root}/a/b/g`],
      ['write', `${root}/b/b/f`],
    ];
    expect(run(policy, asked)).toEqual([0, EACCES, EACCES, EACCES, 0, 0, 0, 0, 0]);
    for (const file of ['/a/a/f', '/a/b/f']) writeFileSync(join(root, file), 'text');
  });

  it('running is allowed where it is said', () => {
    const run1 = policyOf(
      ['/', 'read', 'write'],
      ['/usr', 'read', 'exec'],
      [`${root}/a`, 'read', 'write', 'exec'],
    );
    const asked: Asked[] = [
      ['exec', `${root}/a/true`],
      ['exec', `${root}/b/true`],
      ['write', `${root}/b/true`],
    ];
    expect(run(run1, asked)).toEqual([0, EACCES, 0]);
  });

  it('denies what it promises and nothing else', () => {
    const trees: Rule[] = ['/a', '/b/a', '/ab', '/a/b', '/b/b', '/ab/ab/f', '/*/a'].flatMap(
      (path) =>
        [['read'], ['read', 'write'], ['hide'], []].map((access): Rule => [root + path, ...access]),
    );
    let promises = 0;
    for (let seed = 0; seed < 24; seed += 1) {
      const picked = new Map<string, Rule>();
      for (let k = 0; k < 4; k += 1) {
        const rule = trees[(seed * 31 + k * 17 + seed * k * 7) % trees.length] as Rule;
        picked.set(rule[0], rule);
      }
      const kept = [...picked.values()].filter(
        ([path, access]) =>
          access === 'hide' ||
          ![...picked.values()].some(
            ([above, hide]) => hide === 'hide' && path.startsWith(`${above}/`),
          ),
      );
      const policy = policyOf(['/', 'read', 'exec'], ...kept);
      const facts = { ...BARE_FACTS, landlockAbi };
      const asked = files.map((file): Asked => ['write', root + file]);
      const answers = run(policy, asked);
      const compiled = compileLandlock(policy, facts);
      promises += promisesOf(compiled);
      const denied = new Map(asked.map(([, path], index) => [path, answers[index] === EACCES]));
      expect(answers.every((errno) => errno === 0 || errno === EACCES)).toBe(true);
      expectKept(
        policy,
        compiled,
        (path, verb) => verb === 'write' && denied.get(path) === true,
        files.map((file) => root + file),
      );
    }
    expect(promises).toBeGreaterThan(24);
  });
});
