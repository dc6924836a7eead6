#!/usr/bin/env node
// @ts-check
import { writeFileSync, writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { run } from '../bootstrap/run.mjs';
import { EXIT, GuestFailure, LabUnavailable } from './failure.mjs';
import { commandScript, localReport, shellScript, suiteScript } from './job-script.mjs';
import { GUEST_REPOSITORY, prepareLab, REPOSITORY, runInLab } from './lab.mjs';

const USAGE = `Boots the lab guest, runs one thing in it as root, and turns it off.

  node tools/lab/run.mjs [options] -- COMMAND [ARGUMENT…]   in a copy of the repository; its exit code is ours
  node tools/lab/run.mjs [options] --suite [-- FILTER…]     the tests in tests/lab
  node tools/lab/run.mjs [options] --shell                  a shell for a person

  --report FILE      with --suite: vitest's JSON report
  --events           with --suite: the events of tools/test/vitest-reporter.mjs on descriptor 3, as tests end
  --timeout SECONDS  limit for the guest's whole life (${EXIT.timeout} when it is reached)
  --memory MIB       of the guest (2048)
  --timing           print when the guest reached what

Exits with ${EXIT.unavailable} and the reason where this machine cannot run it; with ${EXIT.boot} when
the guest died before the command ran, with ${EXIT.died} when it died while it ran.
`;

/** Where `tools/test.mjs` listens. */
const EVENTS_FD = 3;
/** Of the launcher's tests, below native/. */
const TEST_PROGRAMS = ['build/launcher_pid1', 'build/launcher_pinned'];
const TIMEOUTS_S = { command: 600, suite: 600, shell: 86_400 };

/** What was asked for; throws on anything else. @param {string[]} args */
function parse(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      suite: { type: 'boolean', default: false },
      shell: { type: 'boolean', default: false },
      report: { type: 'string' },
      events: { type: 'boolean', default: false },
      timeout: { type: 'string' },
      memory: { type: 'string', default: '2048' },
      timing: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const kind = values.suite ? 'suite' : values.shell ? 'shell' : 'command';
  const timeoutS = Number(values.timeout ?? TIMEOUTS_S[kind]);
  const memoryMib = Number(values.memory);
  if (!(timeoutS > 0 && timeoutS <= 86_400)) throw new TypeError('--timeout takes seconds');
  if (!(memoryMib >= 256 && memoryMib <= 65_536)) throw new TypeError('--memory takes MiB');
  if (kind === 'command' && positionals.length === 0 && !values.help) {
    throw new TypeError('a command is missing');
  }
  return { ...values, kind, timeoutS, memoryMib, positionals };
}

/** @param {ReturnType<typeof parse>} options */
function scriptFor({ kind, positionals, events }) {
  const colours = process.stdout.isTTY ? {} : { NO_COLOR: '1' };
  const env = { ...colours, ...process.env };
  if (kind === 'suite') return suiteScript({ filters: positionals, withEvents: events }, env);
  return kind === 'shell' ? shellScript(process.stdout, env) : commandScript(positionals, env);
}

/**
 * @param {ReturnType<typeof parse>} options
 * @param {AbortSignal} signal Ends the guest.
 */
async function main(options, signal) {
  const startedMs = performance.now();
  const tell = (/** @type {string} */ what, /** @type {number} */ ms, more = '') => {
    if (options.timing) process.stderr.write(`lab: ${what.padEnd(24)}${seconds(ms)}${more}\n`);
  };
  if (options.kind === 'suite') await buildAll();
  const lab = await prepareLab((name, made) => {
    if (!made.reused) tell(`made: ${name}`, made.tookMs);
  });
  tell(
    'ready to start',
    performance.now() - startedMs,
    `  Linux ${lab.release}, QEMU ${lab.qemu}, ${lab.accelerator}`,
  );
  const result = await runInLab(lab, options.memoryMib, {
    script: scriptFor(options),
    timeoutMs: options.timeoutS * 1000,
    terminal: options.kind === 'shell',
    stdout: process.stdout,
    stderr: process.stderr,
    signal,
    onEvents: (bytes) => writeFully(EVENTS_FD, bytes),
    onMilestone: ({ name, elapsedMs }) => tell(`guest: ${name}`, elapsedMs),
  });
  tell('guest: off', result.elapsedMs);
  if (options.report !== undefined) {
    if (result.report.length === 0) throw new GuestFailure('died', 'the suite left no report');
    writeFileSync(
      options.report,
      localReport(result.report.toString(), GUEST_REPOSITORY, REPOSITORY),
    );
  }
  return result.code;
}

/** The suite runs the compiled packages and programs: the guest has no compiler. */
async function buildAll() {
  const limits = { cwd: REPOSITORY, timeoutMs: TIMEOUTS_S.command * 1000 };
  const compiler = 'node_modules/typescript/bin/tsc';
  const packages = await run(process.execPath, [compiler, '-b'], limits);
  if (packages.code !== 0) throw new Error(`the packages do not compile:\n${packages.tail}`);
  const programs = await run('make', ['-C', 'native', '-s', 'all', ...TEST_PROGRAMS], limits);
  if (programs.code !== 0) throw new Error(`the programs do not compile:\n${programs.tail}`);
}

/**
 * @param {number} fd
 * @param {Buffer} bytes
 */
function writeFully(fd, bytes) {
  for (let sent = 0; sent < bytes.length; ) {
    try {
      sent += writeSync(fd, bytes, sent);
    } catch (error) {
      // The reader is behind, and gave us a pipe that does not wait.
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

/** @param {number} ms */
function seconds(ms) {
  return `${(ms / 1000).toFixed(2)} s`.padStart(9);
}

function readOptions() {
  try {
    return parse(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    process.exit(EXIT.usage);
  }
}

const options = readOptions();
const abort = new AbortController();
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => abort.abort());
}
if (options.help) {
  process.stdout.write(USAGE);
} else {
  try {
    process.exitCode = await main(options, abort.signal);
  } catch (error) {
    if (!(error instanceof LabUnavailable || error instanceof GuestFailure)) throw error;
    if (!abort.signal.aborted) process.stderr.write(`lab: ${error.message}\n`);
    process.exitCode = abort.signal.aborted ? EXIT.interrupted : error.exitCode;
  }
}
