#!/usr/bin/env node
// @ts-check
/**
 * Brings a machine to a state in which DSec is built: distribution packages, npm packages, TypeScript, C.
 * Plain JavaScript without dependencies, because nothing is installed when it starts. `--help` says more.
 */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createApt } from './bootstrap/apt.mjs';
import { BootstrapFailure, EXIT } from './bootstrap/failure.mjs';
import { judgeHost, readHost } from './bootstrap/host.mjs';
import { takeLock } from './bootstrap/lock.mjs';
import { parseOptions, USAGE } from './bootstrap/options.mjs';
import { createReport } from './bootstrap/report.mjs';
import { endAllRunning, run } from './bootstrap/run.mjs';
import { nativeStep, typescriptStep } from './bootstrap/step-build.mjs';
import { downloadsStep } from './bootstrap/step-downloads.mjs';
import { modulesStep } from './bootstrap/step-modules.mjs';
import { packagesStep } from './bootstrap/step-packages.mjs';
import { pythonStep, pythonTestStep } from './bootstrap/step-python.mjs';

/** @typedef {import('./bootstrap/step.mjs').Step} Step */
/** @typedef {import('./bootstrap/step.mjs').Context} Context */

const BUILD_STEPS = [packagesStep, modulesStep, typescriptStep, nativeStep, pythonStep];
const TEST_STEPS = [downloadsStep, pythonTestStep];

/** Longer than the grace that a command gets to end. */
const INTERRUPT_GRACE_MS = 5000;

const report = createReport(process.stdout);
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.once(signal, () => {
    report.stop();
    endAllRunning();
    console.error(`interrupted by ${signal}; start again to go on where it stopped`);
    process.exitCode = EXIT.interrupted;
    setTimeout(() => process.exit(), INTERRUPT_GRACE_MS).unref();
    if (!endAllRunning()) process.exit();
  });
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  report.stop();
  if (!(error instanceof BootstrapFailure)) throw error;
  if (process.exitCode !== EXIT.interrupted) {
    console.error(`\n${error.message}\n\nwhat to do: ${error.remedy}`);
    process.exitCode = error.exitCode;
  }
}

/** @param {readonly string[]} args */
async function main(args) {
  const options = parseOptions(args);
  if (options.help) {
    process.stdout.write(USAGE);
    return EXIT.ready;
  }
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  const host = readHost();
  report.say(
    `DSec bootstrap: ${host.title}, Linux ${host.kernel}, Node ${host.node}, npm ${host.npm || '(none)'}, ` +
      `${host.processors} processors`,
  );
  const faults = judgeHost(host);
  if (faults.length > 0) {
    throw new BootstrapFailure('host', faults.join('\n'), 'mend this, then start again');
  }
  const apt = createApt({ report });
  const steps = options.test ? [...BUILD_STEPS, ...TEST_STEPS] : BUILD_STEPS;
  if (options.check) return check(steps, { root, host, options, report, apt, run });

  const lock = await takeLock(join(root, '.cache/bootstrap.lock'), (holder) =>
    report.say(`another bootstrap is at work (${holder}); waiting for it`),
  );
  /** @type {Context['run']} */
  const runLocked = (command, commandArgs, how) =>
    run(command, commandArgs, { ...how, inheritFd: lock });
  const startedMs = performance.now();
  for (const step of steps) await bring(step, { root, host, options, report, apt, run: runLocked });
  report.say(`ready after ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
  return EXIT.ready;
}

/** @param {readonly Step[]} steps @param {Context} context */
async function check(steps, context) {
  let count = 0;
  for (const step of steps) {
    const missing = await step.missing(context);
    count += missing.length;
    report.say(
      `  ${step.name.padEnd(12)} ${missing.length === 0 ? 'ready' : `missing: ${missing.join(', ')}`}`,
    );
  }
  return count === 0 ? EXIT.ready : EXIT.missing;
}

/** @param {Step} step @param {Context} context */
async function bring(step, context) {
  report.start(step.name);
  const missing = await step.missing(context);
  if (missing.length > 0) {
    await step.bring(context, missing);
    const still = await step.missing(context);
    if (still.length > 0) {
      throw new BootstrapFailure(
        'packages',
        `${step.name}: still missing after it was brought: ${still.join(', ')}`,
        'look at the output above; if a source changed meanwhile, start again',
      );
    }
  }
  const what = (await step.summary?.(context)) ?? 'ready';
  report.done(missing.length === 0 ? what : `${what} (brought ${missing.join(', ')})`);
}
