/** Profiles that the policy compiler makes, loaded and enforced by a kernel that has AppArmor. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  BARE_FACTS,
  compileAppArmor,
  decidingRule,
  type Policy,
  parsePolicy,
  resolvePolicy,
  type Verb,
} from '@dsec/policy';
import { expect, it, onTestFinished } from 'vitest';
import { newDirectory, onlyInGuest, shell } from './guest.ts';

onlyInGuest();

type Rule = readonly [path: string, ...access: string[]];

const policyOf = (root: string, ...rules: readonly Rule[]): Policy =>
  resolvePolicy(
    parsePolicy({
      version: 1,
      files: rules.map(([path, ...access]) => ({ path: root + path, access })),
    }),
  );

const compiledOf = (policy: Policy) =>
  compileAppArmor(policy, { ...BARE_FACTS, hasAppArmor: true });

/** Loads the profile until the test ends; gives its name. */
function load(policy: Policy): string {
  const { output } = compiledOf(policy);
  if (output === undefined) throw new Error('there is a profile');
  const file = join(newDirectory(), 'profile');
  writeFileSync(file, output.text);
  expect(shell('apparmor_parser --replace --skip-cache "$1"', file)).toMatchObject({ code: 0 });
  onTestFinished(() => {
    shell('apparmor_parser --remove "$1"', file);
  });
  return output.name;
}

/** Runs a script as root, under the profile. */
const confined = (name: string, script: string, ...args: string[]) =>
  shell(
    'echo "exec $1" >/proc/self/attr/apparmor/exec; shift; exec /bin/sh -c "$@"',
    name,
    script,
    'sh',
    ...args,
  );

function plant(root: string, files: readonly string[]): void {
  for (const file of files) {
    mkdirSync(dirname(root + file), { recursive: true });
    writeFileSync(root + file, 'text\n');
  }
}

it('root cannot read what is hidden, by no name and after no move', () => {
  const planted = () => {
    const root = newDirectory();
    plant(root, ['/opt/grader/answers/one', '/work/mine']);
    return root;
  };
  const root = planted();
  const name = load(policyOf(root, ['/opt/grader/answers', 'hide']));
  const attempts = [
    'cat opt/grader/answers/one',
    'ls opt/grader/answers',
    'mv opt/grader/answers moved && cat moved/one',
    'mv opt/grader moved && cat moved/answers/one',
    'mv opt moved && cat moved/grader/answers/one',
    'ln opt/grader/answers/one work/link && cat work/link',
    'ln -s ../opt/grader/answers work/soft && cat work/soft/one',
    'cd opt/grader/answers && cat one',
    'echo x >opt/grader/answers/two',
    'rm opt/grader/answers/one',
    'mount --bind opt/grader/answers work && cat work/one',
  ];
  for (const attempt of attempts) {
    const script = `cd "$1" && { ${attempt}; } 2>/dev/null`;
    const { stdout, code } = confined(name, script, root);
    expect({ attempt, stdout, failed: code !== 0 }).toEqual({ attempt, stdout: '', failed: true });
    // The control: without the profile it succeeds.
    expect({ attempt, code: shell(script, planted()).code }).toEqual({ attempt, code: 0 });
  }
  const fine =
    'cd "$1" && cat work/mine && echo y >work/mine && mv work/mine work/yours && rm work/yours';
  expect(confined(name, fine, root)).toMatchObject({ code: 0, stdout: 'text\n' });
});

it('what may not be changed can be read and run, and exceptions changed', () => {
  const root = newDirectory();
  plant(root, ['/usr/local/mine', '/usr/locals', '/usr/bin/x']);
  mkdirSync(`${root}/usr/deny`);
  for (const place of ['bin', 'deny']) copyFileSync('/lab/busybox', `${root}/usr/${place}/true`);
  const name = load(
    policyOf(
      root,
      ['/usr', 'read', 'exec'],
      ['/usr/local', 'read', 'write', 'exec'],
      ['/usr/deny', 'read'],
    ),
  );
  const does = (script: string) =>
    confined(name, `cd "$1" && { ${script}; } 2>/dev/null`, root).code === 0;
  expect(does('usr/bin/true')).toBe(true);
  expect(does('usr/deny/true')).toBe(false);
  expect(shell('"$1/usr/deny/true"', root).code).toBe(0);
  expect(does('cat usr/deny/true >/dev/null')).toBe(true);
  expect(does('echo x >usr/bin/true')).toBe(false);
  expect(does('mv usr/bin other')).toBe(false);
  expect(does('mv usr other')).toBe(false);
  expect(does('echo x >usr/locals')).toBe(false);
  expect(does('mkdir usr/loc')).toBe(false);
  expect(does('echo x >usr/local/mine && mkdir usr/local/more && rmdir usr/local/more')).toBe(true);
});

it('root has the capabilities and sockets of the policy and no others', () => {
  const root = newDirectory();
  plant(root, ['/mine']);
  const policy = resolvePolicy(
    parsePolicy({ version: 1, capabilities: ['kill'], sockets: [{ family: 'unix' }] }),
  );
  const name = load(policy);
  const attempts = ['chown 1 "$1/mine"', '/lab/busybox nc -l -p 7 & sleep 1; kill $!'];
  for (const attempt of attempts) {
    expect(confined(name, attempt, root).code, attempt).not.toBe(0);
    expect(shell(attempt, root).code, attempt).toBe(0);
  }
});

const NAMES = ['a', 'b', 'ab'];
const FILES = NAMES.flatMap((one) => NAMES.map((two) => `/${one}/${two}/f`));
/** Of each file: whether it can be read, and opened to write. */
const LOOK =
  'cd "$1"; shift; for f in "$@"; do r=0; w=0; ' +
  '(read x <"$f") 2>/dev/null && r=1; (: >>"$f") 2>/dev/null && w=1; echo $r$w; done';

it('denies what it promises and nothing else', () => {
  const root = newDirectory();
  plant(root, FILES);
  const rules: Rule[] = ['/a', '/a/b', '/a/b/f', '/*/ab', '/**/b', '/ab/a*', '/b/ab'].flatMap(
    (path) => [['read'], ['read', 'write'], ['hide'], []].map((access): Rule => [path, ...access]),
  );
  let promises = 0;
  for (let seed = 0; seed < 12; seed += 1) {
    const picked = new Map<string, Rule>();
    for (let k = 0; k < 4; k += 1) {
      const rule = rules[(seed * 13 + k * 11 + seed * k * 5) % rules.length] as Rule;
      picked.set(rule[0], rule);
    }
    const hidden = [...picked.values()].filter(
      ([path, access]) => access === 'hide' && !path.includes('*'),
    );
    const policy = policyOf(
      root,
      ...[...picked.values()].filter(
        ([path, access]) =>
          access === 'hide' || !hidden.some(([above]) => path.startsWith(`${above}/`)),
      ),
    );
    const promised = new Set(
      compiledOf(policy).enforced.flatMap(({ rule, verbs = [] }) =>
        verbs.map((verb) => `${rule.source.field} ${verb}`),
      ),
    );
    promises += promised.size;
    const seen = confined(load(policy), LOOK, root, ...FILES.map((file) => `.${file}`)).stdout;
    const lines = seen.trim().split('\n');
    expect(lines).toHaveLength(FILES.length);
    for (const [index, file] of FILES.entries()) {
      const rule = decidingRule(policy.files, root + file);
      for (const [at, verb] of (['read', 'write'] as const satisfies Verb[]).entries()) {
        const isDenied = lines[index]?.[at] === '0';
        const isMeant = rule?.denied.has(verb) === true;
        const texts = policy.files.map(({ glob, denied }) => `${glob.text} -${[...denied]}`);
        const where = `${verb} ${file} by ${texts.join('; ')}`;
        if (isDenied) expect(isMeant, where).toBe(true);
        if (isMeant && promised.has(`${rule?.source.field} ${verb}`))
          expect(isDenied, where).toBe(true);
      }
    }
  }
  expect(promises).toBeGreaterThan(24);
});
