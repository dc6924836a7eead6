// @ts-check
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

/**
 * @typedef {object} Suite
 * @property {string} name As in `--only` and in tests/floors.json.
 * @property {string} about What it shows.
 * @property {number} limitS How long it may take; ten times as much with `--long`.
 * @property {readonly SuiteStep[]} steps Run one after another.
 * @property {boolean} [privateMounts] Runs in a mount namespace of its own (needs root).
 *   DSEC_TEST_PRIVATE_MOUNTS then names it, as in `readlink /proc/self/ns/mnt`; tests that mount skip
 *   themselves elsewhere.
 */

/**
 * @typedef {object} SuiteStep One command. How its tests are counted depends on `counts`.
 * @property {string} name
 * @property {readonly string[]} command It exits with 75 when this machine cannot run it, the reason in
 *   its last line.
 * @property {'itself' | 'vitest' | 'junit' | 'tap'} counts `itself`: the command is one test. `vitest`:
 *   our reporter tells on descriptor 3. `junit`: it writes XML to the file in $DSEC_TEST_JUNIT. `tap`: it
 *   prints TAP lines, or is one test if it prints none.
 * @property {(root: string) => string | undefined} [absent] Why there is nothing to run here, if so.
 * @property {Readonly<Record<string, string>>} [env]
 */

const NODE = process.execPath;
const VITEST = 'node_modules/vitest/vitest.mjs';
const TSC = 'node_modules/typescript/bin/tsc';

/** Where files wait more than they work, or are alone with what they test. The others share the host. */
const WORKERS = Math.max(2, availableParallelism() - 1);

/** Inputs for each fuzzer of native/. */
const NATIVE_FUZZ_RUNS = { short: 100_000, long: 20_000_000 };

/**
 * Every suite, in the order in which they run: those that fail fastest come first.
 *
 * @param {boolean} long
 * @returns {readonly Suite[]}
 */
export function suites(long) {
  return [
    {
      name: 'static',
      about: 'types, format, house rules, generated files',
      limitS: 300,
      steps: [
        itself('types of the sources', [NODE, TSC, '-b']),
        itself('types of tests and tools', [NODE, TSC, '-p', 'tsconfig.test.json']),
        itself('lint and format', [
          NODE,
          'node_modules/@biomejs/biome/bin/biome',
          'ci',
          '--error-on-warnings',
          '--colors=off',
          '--max-diagnostics=30',
          '.',
        ]),
        {
          ...itself('generated files are fresh', [NODE, 'tools/generate/main.mjs', '--check']),
          absent: needsFile('tools/generate/main.mjs'),
        },
        vitest('static'),
      ],
    },
    {
      name: 'unit',
      about: 'every package and tool by itself',
      limitS: 600,
      steps: [vitest('unit', WORKERS)],
    },
    {
      name: 'native',
      about: 'the C sources under sanitizers, then fuzzed',
      limitS: 300,
      steps: [
        {
          name: 'make test',
          command: ['make', '-C', 'native', 'test'],
          counts: 'tap',
          absent: needsFile('native/Makefile'),
        },
        {
          name: 'make fuzz',
          command: [
            'make',
            '-C',
            'native',
            'fuzz',
            `RUNS=${NATIVE_FUZZ_RUNS[long ? 'long' : 'short']}`,
          ],
          counts: 'tap',
          absent: needsFile('native/Makefile'),
        },
      ],
    },
    {
      name: 'python',
      about: 'the Python models and SDK',
      limitS: 300,
      steps: [
        {
          name: 'pytest',
          command: [
            '.venv/bin/python',
            '-m',
            'pytest',
            '-q',
            '-p',
            'no:cacheprovider',
            '--junitxml',
            '$DSEC_TEST_JUNIT',
            'python/tests',
          ],
          counts: 'junit',
          absent: needsFile('python/tests'),
        },
      ],
    },
    {
      name: 'integration',
      about: 'packages together on this kernel, with real mounts',
      limitS: 900,
      privateMounts: true,
      steps: [vitest('integration', WORKERS)],
    },
    {
      name: 'e2e',
      about: 'a server as users have it, and the SDKs in front of it',
      limitS: 600,
      privateMounts: true,
      steps: [vitest('e2e', WORKERS)],
    },
    {
      name: 'security',
      about: 'hostile actions against sandboxes, each with a control',
      limitS: 900,
      privateMounts: true,
      steps: [vitest('security')],
    },
    {
      name: 'fuzz',
      about: 'hostile input, bounded',
      limitS: 600,
      steps: [vitest('fuzz', WORKERS)],
    },
    {
      name: 'chaos',
      about: 'kills and races',
      limitS: 600,
      privateMounts: true,
      steps: [vitest('chaos')],
    },
    {
      name: 'lab',
      about: 'privileged tests in a guest with Linux 6.12',
      limitS: 900,
      steps: [
        {
          name: 'guest',
          command: [NODE, 'tools/lab/run.mjs', '--suite', '--events'],
          counts: 'vitest',
        },
      ],
    },
  ];
}

/** @param {string} name @param {readonly string[]} command @returns {SuiteStep} */
function itself(name, command) {
  return { name, command, counts: 'itself' };
}

/** @param {string} project @param {number} [workers] Files at a time. @returns {SuiteStep} */
function vitest(project, workers = 1) {
  const command = [
    NODE,
    VITEST,
    'run',
    '--project',
    project,
    '--reporter',
    './tools/test/vitest-reporter.mjs',
    '--passWithNoTests',
    '--maxWorkers',
    String(workers),
  ];
  return { name: project, command, counts: 'vitest' };
}

/** @param {string} path */
function needsFile(path) {
  return (/** @type {string} */ root) =>
    existsSync(join(root, path)) ? undefined : `there is no ${path}`;
}
