import { describe, expect, it } from 'vitest';
import { formatFinding, type Repository, type Rule, repositoryOf } from './repository.ts';
import { circlesOf, noFileCycles, noPackageCycles } from './rule-cycles.ts';
import {
  filesAreSmall,
  filesAreText,
  noConflictMarkers,
  noDeveloperPaths,
} from './rule-hygiene.ts';
import { everyFileIsUsed, importsPointDown, importsResolve } from './rule-imports.ts';
import {
  dependenciesAreImports,
  outsideImportsAreDeclared,
  referencesAreDependencies,
} from './rule-manifests.ts';
import { columnCount, fileLength, functionLength } from './rule-size.ts';
import { noHiddenTests, noMarkers } from './rule-words.ts';
import { RULES } from './rules.ts';

type Texts = Record<string, string | Buffer>;

const manifest = (name: string, dependencies: Record<string, string> = {}) =>
  JSON.stringify({
    name: `@dsec/${name}`,
    exports: { '.': { source: './src/index.ts', default: './dist/index.js' } },
    dependencies,
  });
const tsconfig = (...paths: string[]) =>
  JSON.stringify({ references: paths.map((path) => ({ path })) });

/** A small repository that keeps every rule. */
const GOOD: Texts = {
  'package.json': JSON.stringify({ devDependencies: { vitest: '4' } }),
  'tsconfig.json': tsconfig('packages/std', 'packages/store'),
  'tools/tidy/entry-points.json': '{"tools/run.mjs": "run by npm"}',
  'tools/run.mjs': "import { step } from './step.mjs';\nstep();\n",
  'tools/step.mjs': 'export function step() {}\n',
  'packages/std/package.json': manifest('std'),
  'packages/std/tsconfig.json': tsconfig(),
  'packages/std/src/index.ts': "export * from './ids.ts';\n",
  'packages/std/src/ids.ts': 'export const id = 1;\n',
  'packages/std/test/ids.test.ts':
    "import { id } from '@dsec/std';\nimport { it } from 'vitest';\nit('is', () => void id);\n",
  'packages/store/package.json': manifest('store', { '@dsec/std': '1', ws: '8' }),
  'packages/store/tsconfig.json': tsconfig('../std'),
  'packages/store/src/index.ts':
    "export { id } from '@dsec/std';\nexport { WebSocket } from 'ws';\n",
  'native/main.c': 'int main(void) { return 0; }\n',
};

const withFiles = (texts: Texts): Repository => repositoryOf({ ...GOOD, ...texts });
const found = (rule: Rule, texts: Texts): string[] =>
  rule.check(withFiles(texts)).findings.map(formatFinding);

describe('a repository that keeps the rules', () => {
  it.each(RULES)('$name: looks at something and finds nothing', ({ check }) => {
    const { looked, findings } = check(withFiles({}));
    expect(findings).toEqual([]);
    expect(looked).toBeGreaterThan(0);
  });
});

/** Each rule, a change that breaks it, and where it must point. */
const BAD: [rule: Rule, what: string, texts: Texts, at: RegExp][] = [
  [
    fileLength,
    'a long file',
    { 'tools/run.mjs': '\n'.repeat(401) },
    /^tools\/run\.mjs:401: 401 lines/,
  ],
  [fileLength, 'a long C file', { 'native/main.c': '\n'.repeat(401) }, /^native\/main\.c:401/],
  [columnCount, 'a wide line', { 'tools/run.mjs': `// ${'x'.repeat(108)}\n` }, /:1: 111 columns/],
  [
    columnCount,
    'a tab is eight wide',
    { 'native/main.c': `${'\t'.repeat(14)}\n` },
    /:1: 112 columns/,
  ],
  [
    functionLength,
    'a long function',
    { 'tools/step.mjs': `export function step() {\n${'  step();\n'.repeat(70)}}\n` },
    /^tools\/step\.mjs:1: a function of 72 lines/,
  ],
  [
    functionLength,
    'a long arrow function in a test',
    { 'packages/std/test/ids.test.ts': `it('x', () => {\n${'  f();\n'.repeat(70)}});\n` },
    /ids\.test\.ts:1: a function of 72 lines/,
  ],
  [
    functionLength,
    'steps hidden in a literal',
    {
      'tools/step.mjs': `export const step = () => ({\n  a() {\n${'    f();\n'.repeat(70)}  },\n});\n`,
    },
    /^tools\/step\.mjs:1: a function/,
  ],
  [
    everyFileIsUsed,
    'an unused source',
    { 'packages/std/src/old.ts': '' },
    /old\.ts:1: cannot be reached/,
  ],
  [
    everyFileIsUsed,
    'a source that only a test imports',
    {
      'packages/std/src/old.ts': '',
      'packages/std/test/old.test.ts': "import '../src/old.ts';\n",
    },
    /src\/old\.ts:1: cannot be reached/,
  ],
  [
    everyFileIsUsed,
    'an unused tool',
    { 'tools/old.mjs': '' },
    /^tools\/old\.mjs:1: nothing imports it/,
  ],
  [
    everyFileIsUsed,
    'an entry point that is gone',
    { 'tools/tidy/entry-points.json': '{"tools/run.mjs": "x", "tools/gone.mjs": "x"}' },
    /entry-points\.json:1: tools\/gone\.mjs does not exist/,
  ],
  [
    importsResolve,
    'a missing file',
    { 'tools/run.mjs': "import './gone.mjs';\n" },
    /run\.mjs:1: \.\/gone/,
  ],
  [
    importsResolve,
    'a missing package',
    { 'tools/run.mjs': "import '@dsec/gone';\n" },
    /@dsec\/gone leads nowhere/,
  ],
  [
    importsPointDown,
    'an import of a higher level',
    { 'packages/std/src/ids.ts': "import '@dsec/store';\n" },
    /std\/src\/ids\.ts:1: store \(level 2\) is above/,
  ],
  [
    importsPointDown,
    'a type import of a higher level',
    { 'packages/std/src/ids.ts': "export type A = import('@dsec/store').A;\n" },
    /std\/src\/ids\.ts:1: store \(level 2\) is above/,
  ],
  [
    importsPointDown,
    'an import of the same level',
    {
      'packages/store/src/index.ts': "import '@dsec/erofs';\n",
      'packages/erofs/package.json': manifest('erofs'),
    },
    /erofs \(level 2\) is on the same level/,
  ],
  [
    importsPointDown,
    'an import by path',
    { 'packages/store/src/index.ts': "import '../../std/src/ids.ts';\n" },
    /import @dsec\/std by its name/,
  ],
  [
    importsPointDown,
    'an import that leaves the packages',
    { 'packages/std/src/ids.ts': "import '../../../tools/step.mjs';\n" },
    /leaves packages\/std/,
  ],
  [
    importsPointDown,
    'a package without a level',
    { 'packages/new/package.json': manifest('new') },
    /no level/,
  ],
  [
    noFileCycles,
    'two files in a circle',
    {
      'packages/std/src/ids.ts': "import './units.ts';\n",
      'packages/std/src/units.ts': "import type { Id } from './ids.ts';\n",
    },
    /a circle \(.*ids\.ts → .*units\.ts → .*ids\.ts\)/,
  ],
  [
    noPackageCycles,
    'two packages in a circle',
    { 'packages/std/package.json': manifest('std', { '@dsec/store': '1' }) },
    /packages\/std\/package\.json:1: a circle \(std → store → std\)/,
  ],
  [
    dependenciesAreImports,
    'an import that is not listed',
    { 'packages/std/src/ids.ts': "import 'undici/fetch';\n" },
    /packages\/std\/package\.json:1: src imports undici: add/,
  ],
  [
    dependenciesAreImports,
    'a dependency that nothing imports',
    { 'packages/std/package.json': manifest('std', { '@a/b': '1' }) },
    /nothing in src imports @a\/b: remove/,
  ],
  [
    dependenciesAreImports,
    'an unlisted import of a test',
    { 'packages/std/test/ids.test.ts': "import 'chai';\n" },
    /a test imports chai/,
  ],
  [
    outsideImportsAreDeclared,
    'an unlisted import of a tool',
    { 'tools/run.mjs': "import 'chalk';\n" },
    /add chalk/,
  ],
  [
    referencesAreDependencies,
    'a missing reference',
    { 'packages/store/tsconfig.json': tsconfig() },
    /store\/tsconfig\.json:1: add a reference to packages\/std/,
  ],
  [
    referencesAreDependencies,
    'a reference too many',
    { 'packages/std/tsconfig.json': tsconfig('../store') },
    /std\/tsconfig\.json:1: remove the reference to packages\/store/,
  ],
  [
    referencesAreDependencies,
    'a package that the root does not build',
    { 'tsconfig.json': tsconfig('packages/std') },
    /^tsconfig\.json:1: add a reference to packages\/store/,
  ],
  [
    noMarkers,
    'a note for later',
    { 'native/main.c': `/* ${'TO'}DO */\n` },
    /^native\/main\.c:1: \w+: do it now/,
  ],
  [
    noHiddenTests,
    'only',
    { 'tools/a.test.ts': "it.only('x', () => {});\n" },
    /a\.test\.ts:1: \.only hides/,
  ],
  [
    noHiddenTests,
    'skip',
    { 'tools/a.test.ts': "\ndescribe.skip('x', () => {});\n" },
    /:2: \.skip gives no reason/,
  ],
  [
    noHiddenTests,
    'runIf',
    { 'tools/a.test.ts': "it.runIf(f)('x', () => {});\n" },
    /\.runIf gives no reason/,
  ],
  [
    filesAreSmall,
    'a large file',
    { 'docs/a.md': 'x'.repeat((1 << 20) + 1) },
    /^docs\/a\.md:1: 1048577 bytes/,
  ],
  [filesAreText, 'a NUL', { 'docs/a.md': 'a\0b' }, /^docs\/a\.md:1: not UTF-8 text/],
  [
    filesAreText,
    'bytes that are not UTF-8',
    { 'docs/a.md': Buffer.from([0xff, 0xfe]) },
    /not UTF-8 text/,
  ],
  [
    noDeveloperPaths,
    'the root',
    { 'docs/a.md': 'see /repository/docs\n' },
    /^docs\/a\.md:1: \/repository is/,
  ],
  [
    noDeveloperPaths,
    'a home',
    { 'docs/a.md': `\n/ho${'me'}/somebody/x\n` },
    /^docs\/a\.md:2: .*somebody/,
  ],
  [
    noConflictMarkers,
    'a marker',
    { 'docs/a.md': `${'<'.repeat(7)} HEAD\n` },
    /^docs\/a\.md:1: resolve/,
  ],
];

describe('a repository that breaks a rule', () => {
  it.each(BAD)('%o: %s', (rule, _what, texts, at) => {
    const findings = found(rule, texts);
    expect(findings.filter((finding) => at.test(finding))).toHaveLength(1);
  });

  it('has a bad sample for every rule', () => {
    const tried = new Set(BAD.map(([rule]) => rule));
    expect(RULES.filter((rule) => !tried.has(rule))).toEqual([]);
  });
});

describe('what the rules allow', () => {
  it.each<[string, Rule, Texts]>([
    ['400 lines', fileLength, { 'tools/run.mjs': `import './step.mjs';\n${'\n'.repeat(399)}` }],
    ['110 columns', columnCount, { 'tools/step.mjs': `// ${'é'.repeat(107)}\n` }],
    [
      'a function that returns a table',
      functionLength,
      { 'tools/step.mjs': `export const step = () => [\n${'  1,\n'.repeat(90)}];\n` },
    ],
    [
      'a suite of many tests',
      functionLength,
      { 'tools/a.test.ts': `describe('x', () => {\n${"  it('y', () => {});\n".repeat(90)}});\n` },
    ],
    ['a generated file of any size', fileLength, { 'tools/x.gen.ts': '\n'.repeat(900) }],
    ['a program of a package', everyFileIsUsed, { ...programOf('std') }],
    ['types in JSDoc', everyFileIsUsed, { ...typesInJsdoc() }],
    [
      'a test with its need in the title',
      noHiddenTests,
      { 'tools/a.test.ts': "it.runIf(f).each([1])('mounts (needs root)', () => {});\n" },
    ],
    [
      'a reason at run time',
      noHiddenTests,
      { 'tools/a.test.ts': "it('x', (c) => c.skip(f, 'why'));\n" },
    ],
    [
      'support of a package’s tests, by path',
      importsPointDown,
      {
        'tests/integration/a.test.ts': "import '../../packages/std/test/support.ts';\n",
        'packages/std/test/support.ts': '',
      },
    ],
    ['a long name of X', noMarkers, { 'tools/step.mjs': "mkdtemp('dsec-XXXXXX');\n" }],
    ['a home inside a sandbox', noDeveloperPaths, { 'docs/a.md': `/ho${'me'}/agent/.bashrc\n` }],
  ])('%s', (_what, rule, texts) => {
    expect(found(rule, texts)).toEqual([]);
  });
});

function programOf(name: string): Texts {
  const text = JSON.parse(manifest(name)) as object;
  return {
    [`packages/${name}/package.json`]: JSON.stringify({ ...text, bin: { x: './dist/cli.js' } }),
    [`packages/${name}/src/cli.ts`]: '',
  };
}

function typesInJsdoc(): Texts {
  return {
    'tools/run.mjs':
      "import './step.mjs';\n/** @param {import('./types.mjs').A} a */\nexport function f(a) {}\n",
    'tools/types.mjs': '/** @typedef {number} A */\nexport {};\n',
  };
}

describe('circlesOf', () => {
  it('finds every circle, also one that is not at the start of a walk', () => {
    const next = new Map([
      ['a', ['b']],
      ['b', ['c', 'd']],
      ['c', ['b']],
      ['d', ['d']],
    ]);
    expect(
      circlesOf(next)
        .map((circle) => circle.join(' '))
        .sort(),
    ).toEqual(['b c b', 'd d']);
  });

  it('takes a chain of a hundred thousand files', () => {
    const length = 100_000;
    const next = new Map(Array.from({ length }, (_, i) => [`f${i}`, [`f${i + 1}`]]));
    expect(circlesOf(next)).toEqual([]);
  });
});
