// @ts-check
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { parseJunit, parseTap } from './formats.mjs';
import { endLeftoverProcesses, leftoverFiles, RUN_VARIABLE, testMounts } from './leftovers.mjs';
import { explainSkip, recordOf } from './record.mjs';
import { runCommand } from './run-command.mjs';

/** @typedef {import('./suites.mjs').Suite} Suite */
/** @typedef {import('./suites.mjs').SuiteStep} SuiteStep */
/** @typedef {import('./record.mjs').TestRecord} TestRecord */

const LONG_FACTOR = 10;
const TAIL_LINES = 40;
/** A command says with it that this machine cannot run it (EX_TEMPFAIL of sysexits.h). */
const EXIT_UNAVAILABLE = 75;

/**
 * Runs a command in a mount namespace of its own and tells it which, so that a test sees that it may
 * mount.
 */
const PRIVATE_MOUNTS = [
  ...['unshare', '-m', '--propagation', 'private', 'sh', '-c'],
  'DSEC_TEST_PRIVATE_MOUNTS=$(readlink /proc/self/ns/mnt) exec "$@"',
  'sh',
];

/**
 * @typedef {object} RunContext
 * @property {string} root The repository.
 * @property {string} folder The temporary folder of this run.
 * @property {string} runId
 * @property {boolean} long
 * @property {boolean} isRoot
 * @property {(record: TestRecord) => void} onRecord Called as each test ends.
 * @property {(file: string) => void} onFile Called as each test file ends.
 */

/**
 * Runs the steps of a suite, then looks for what it left behind. Never rejects: whatever goes wrong is a
 * failed test.
 *
 * @param {Suite} suite
 * @param {RunContext} context
 * @returns {Promise<TestRecord[]>}
 */
export async function runSuite(suite, context) {
  /** @type {TestRecord[]} */
  const records = [];
  const add = (/** @type {TestRecord} */ record) => {
    const explained = explainSkip(record);
    records.push(explained);
    context.onRecord(explained);
  };
  const temporary = join(context.folder, suite.name);
  mkdirSync(temporary, { recursive: true });
  // Tests also run as other users, as in /tmp.
  chmodSync(context.folder, 0o755);
  chmodSync(temporary, 0o1777);
  const log = logPath(context.root, suite);
  mkdirSync(join(log, '..'), { recursive: true });
  writeFileSync(log, '');
  const mountsBefore = new Set(testMounts(context.folder));
  const untilMs = performance.now() + suite.limitS * 1000 * (context.long ? LONG_FACTOR : 1);
  for (const step of suite.steps) {
    const reason = step.absent?.(context.root);
    if (reason !== undefined) add(recordOf(suite.name, step.name, { state: 'skipped', reason }));
    else await runStep({ suite, step, context, temporary, log, add, untilMs });
  }
  const leftovers = [
    ...(await endLeftoverProcesses(context.runId)),
    ...testMounts(context.folder).filter((mount) => !mountsBefore.has(mount)),
    ...leftoverFiles(temporary),
  ];
  if (leftovers.length > 0) {
    const errors = [`left behind; every test cleans up after itself:\n${leftovers.join('\n')}`];
    add(recordOf(suite.name, 'leaves nothing behind', { state: 'failed', errors }));
  }
  return records;
}

/** @param {string} root @param {Suite} suite */
export function logPath(root, suite) {
  return join(root, '.cache/test', `${suite.name}.log`);
}

/**
 * @typedef {object} StepRun
 * @property {Suite} suite
 * @property {SuiteStep} step
 * @property {RunContext} context
 * @property {string} temporary
 * @property {string} log
 * @property {(record: TestRecord) => void} add
 * @property {number} untilMs
 */

/** @param {StepRun} run */
async function runStep(run) {
  const { suite, step, context, temporary, log, untilMs } = run;
  const junit = join(context.folder, `${suite.name}.xml`);
  rmSync(junit, { force: true });
  const wrapper = suite.privateMounts === true && context.isRoot ? PRIVATE_MOUNTS : [];
  const command = [
    ...wrapper,
    ...step.command.map((arg) => (arg === '$DSEC_TEST_JUNIT' ? junit : arg)),
  ];
  const collector = createCollector(run);
  const startedMs = performance.now();
  const result = await runCommand(command, {
    cwd: context.root,
    env: {
      ...step.env,
      NO_COLOR: '1',
      TMPDIR: temporary,
      [RUN_VARIABLE]: context.runId,
      DSEC_TEST_JUNIT: junit,
      ...(context.long ? { DSEC_TEST_LONG: '1' } : {}),
    },
    limitMs: Math.max(0, untilMs - startedMs),
    onOutput: (text) => appendFileSync(log, text),
    onEvent: collector.onEvent,
  });
  if (step.counts === 'tap') parseTap(result.output, step.name).forEach(collector.add);
  if (step.counts === 'junit' && existsSync(junit)) {
    parseJunit(readFileSync(junit, 'utf8')).forEach(collector.add);
  }
  collector.end(result, performance.now() - startedMs);
}

/**
 * Gathers the tests of one step and sees to it that a command that failed without naming a test is a
 * failure too.
 *
 * @param {StepRun} run
 */
function createCollector({ suite, step, context, add }) {
  let count = 0;
  let failed = 0;
  let hasEnded = false;
  const addOne = (/** @type {TestRecord} */ record) => {
    count += 1;
    if (record.state === 'failed') failed += 1;
    add(record);
  };
  const fail = (/** @type {string} */ file, /** @type {readonly string[]} */ errors) =>
    addOne(recordOf(file, step.name, { state: 'failed', errors }));

  return {
    add: addOne,
    onEvent(/** @type {string} */ line) {
      /** @type {import('./record.mjs').TestEvent} */
      const event = JSON.parse(line);
      if (event.kind === 'test') {
        const { kind: _, ...record } = event;
        return addOne({ ...record, reason: record.reason });
      }
      if (event.kind === 'file') context.onFile(event.file);
      else hasEnded = true;
      if (event.errors.length > 0)
        fail(event.kind === 'file' ? event.file : suite.name, event.errors);
    },
    end(
      /** @type {import('./run-command.mjs').CommandResult} */ result,
      /** @type {number} */ durationMs,
    ) {
      const tail = result.output.trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
      if (result.timedOut) {
        return fail(suite.name, [
          `ended after ${Math.round(durationMs / 1000)} s, its time limit:\n${tail}`,
        ]);
      }
      if (result.code === EXIT_UNAVAILABLE && count === 0) {
        const reason = tail.split('\n').at(-1) ?? '';
        return addOne(recordOf(suite.name, step.name, { state: 'skipped', reason }));
      }
      const isSilent = count === 0 && step.counts !== 'vitest' && step.counts !== 'junit';
      if (result.code === 0 && isSilent) {
        return addOne(recordOf(suite.name, step.name, { state: 'passed', durationMs }));
      }
      const isBroken = step.counts === 'vitest' && !hasEnded;
      if (failed === 0 && (result.code !== 0 || isBroken)) {
        fail(suite.name, [
          `${step.command.join(' ')} ended with ${result.code ?? 'a signal'}:\n${tail}`,
        ]);
      }
    },
  };
}
