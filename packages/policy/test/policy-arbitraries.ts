/** Random policies over few names, so that rules meet often, and a second way to judge them. */
import fc from 'fast-check';
import {
  type Policy,
  type PolicyDocument,
  parsePolicy,
  resolvePolicy,
  type Verb,
} from '../src/index.ts';

const NAMES = ['a', 'b', 'ab', 'x.py', 'conftest.py'];
const WILD = ['*', 'a*', '?', '*.py', '*b*'];
const ACCESS = [
  ['hide'],
  [],
  ['read'],
  ['write'],
  ['read', 'write'],
  ['read', 'exec'],
  ['read', 'write', 'exec'],
];

export const pathArbitrary = fc
  .array(fc.constantFrom(...NAMES, 'c'), { maxLength: 4 })
  .map((names) => `/${names.join('/')}`);

const patternOf = (names: readonly string[]) =>
  fc.array(fc.constantFrom(...names), { maxLength: 4 }).map((parts) => `/${parts.join('/')}`);

export const literalArbitrary = patternOf(NAMES);
/** Half of the names, so that literal rules stay common. */
export const patternArbitrary = patternOf([...NAMES, ...NAMES, ...WILD, '**']);

const filesOf = (pattern: fc.Arbitrary<string>) =>
  fc
    .array(fc.record({ path: pattern, access: fc.constantFrom(...ACCESS) }), { maxLength: 6 })
    .map((files) => {
      // Of rules with one pattern, the last: contradictions are refused.
      const byText = new Map(files.map((file) => [plainText(file.path), file]));
      const kept = [...byText.values()].filter(
        ({ path, access }) => !(access[0] === 'hide' && plainText(path) === '/'),
      );
      return kept.filter(({ path, access }) => !(access[0] !== 'hide' && liesHidden(path, kept)));
    });

/** Contradictions are refused: below a path that is hidden, whatever it is. */
const liesHidden = (path: string, files: readonly { path: string; access: string[] }[]) =>
  files.some(
    (other) =>
      other.access[0] === 'hide' &&
      !/[*?]/.test(plainText(other.path)) &&
      (plainText(other.path) === '/' || `${path}/`.startsWith(`${plainText(other.path)}/`)),
  );

const plainText = (path: string) => {
  const collapsed = path.replace(/(\/\*\*)+/g, '/**').replace(/\/\*\*$/, '');
  return collapsed === '' ? '/' : collapsed;
};

const asPolicy = (files: PolicyDocument['files']): Policy =>
  resolvePolicy(parsePolicy({ version: 1, ...(files && { files }) }));

export const filePolicyArbitrary = filesOf(patternArbitrary).map((files) =>
  asPolicy(files as PolicyDocument['files']),
);
export const literalPolicyArbitrary = filesOf(literalArbitrary).map((files) =>
  asPolicy(files as PolicyDocument['files']),
);

/** A policy, and the same with another overlay: most of such switches are small. */
export const switchArbitrary = fc
  .tuple(filesOf(patternArbitrary), filesOf(patternArbitrary), fc.boolean())
  .map(([files, more, isBack]): readonly [Policy, Policy] => {
    const stages = { grade: { files: more.slice(0, 2) } };
    const document = parsePolicy({ version: 1, files, stages });
    const [base, grade] = [resolvePolicy(document), resolvePolicy(document, { stage: 'grade' })];
    return isBack ? [grade, base] : [base, grade];
  });

/** The pattern as a regular expression: fine for patterns that a test makes. */
export function regexOf(text: string): RegExp {
  const known = regexes.get(text);
  if (known !== undefined) return known;
  const parts = text === '/' ? [] : text.slice(1).split('/');
  const source = parts
    .map((part) => {
      if (part === '**') return '(/[^/]+)*';
      const escaped = part.replace(/[.+^$()|[\]{}\\]/g, '\\$&');
      return `/${escaped.replaceAll('*', '[^/]*').replaceAll('?', '[^/]')}`;
    })
    .join('');
  const made = new RegExp(`^${source}$`);
  regexes.set(text, made);
  return made;
}
const regexes = new Map<string, RegExp>();

/** From the root down: at each path that some rule names, the best of those decides; `hide` for good. */
export function naiveIsAllowed(policy: Policy, path: string, verb: Verb): boolean {
  const names = path === '/' ? [] : path.slice(1).split('/');
  let isAllowed = true;
  for (let depth = 0; depth <= names.length; depth += 1) {
    const here = names
      .slice(0, depth)
      .map((name) => `/${name}`)
      .join('');
    const [best] = policy.files
      .filter(({ glob }) => regexOf(glob.text).test(here))
      .map((rule) => ({ rule, key: naiveKey(rule.glob.text, rule.order) }))
      .sort((a, b) => compareKeys(a.key, b.key));
    if (best?.rule.isHidden) return false;
    if (best !== undefined) isAllowed = !best.rule.denied.has(verb);
  }
  return isAllowed;
}

function naiveKey(text: string, order: number): number[] {
  const parts = text.split('/').filter(Boolean);
  const any = parts.filter((part) => part === '**').length;
  const wild = parts.filter((part) => part !== '**' && /[*?]/.test(part)).length;
  const literal = parts.join('').replace(/[*?]/g, '').length;
  return [any, wild, -literal, -order];
}

function compareKeys(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}

/** Every path of up to three of these names. */
export const SAMPLE_PATHS: readonly string[] = (() => {
  const names = [...NAMES, 'c', 'bb'];
  const one = names.map((name) => `/${name}`);
  const two = one.flatMap((path) => names.map((name) => `${path}/${name}`));
  const three = two.flatMap((path) => names.map((name) => `${path}/${name}`));
  return ['/', ...one, ...two, ...three];
})();

export const RUNS = process.env.DSEC_TEST_LONG === '1' ? 5000 : 200;
export const SEED = 20_260;
