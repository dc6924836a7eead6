#!/usr/bin/env node
// @ts-check
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { EXIT, GuestFailure, LabUnavailable } from './failure.mjs';
import { commandScript, localReport, shellScript, suiteScript } from './job-script.mjs';
import { GUEST_REPOSITORY, prepareLab, REPOSITORY, runInLab } from './lab.mjs';

const USAGE = `Boots the lab guest, runs one thing in it as root, and turns it off.

  node tools/lab/run.mjs [options] -- COMMAND [ARGUMENT…]   in a copy of the repository; its exit code is ours
  node tools/lab/run.mjs [options] --suite [-- FILTER…]     the tests in tests/lab
  node tools/lab/run.mjs [options] --shell                  a shell for a person

  --report FILE      with --suite: vitest's JSON report
  --timeout SECONDS  limit for the guest's whole life (${EXIT.timeout} when it is reached)
  --memory MIB       of the guest (2048)
  --timing           print when the guest reached what

Exits with ${EXIT.unavailable} and the reason where this machine cannot run it, ${EXIT.boot} and ${EXIT.died} when the guest died before and while the
command ran.
`;

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
function scriptFor({ kind, positionals }) {
  const colours = process.stdout.isTTY ? {} : { NO_COLOR: '1' };
  const env = { ...colours, ...process.env };
  if (kind === 'suite') return suiteScript(positionals, env);
  return kind === 'shell' ? shellScript(process.stdout, env) : commandScript(positionals, env);
}

/** @param {ReturnType<typeof parse>} options */
async function main(options) {
  const startedMs = performance.now();
  const tell = (/** @type {string} */ what, /** @type {number} */ ms, more = '') => {
    if (options.timing) process.stderr.write(`lab: ${what.padEnd(24)}${seconds(ms)}${more}\n`);
  };
  const abort = new AbortController();
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.once(signal, () => abort.abort());
  }
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
    signal: abort.signal,
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
if (options.help) {
  process.stdout.write(USAGE);
} else {
  try {
    process.exitCode = await main(options);
  } catch (error) {
    if (!(error instanceof LabUnavailable || error instanceof GuestFailure)) throw error;
    process.stderr.write(`lab: ${error.message}\n`);
    process.exitCode = error.exitCode;
  }
}
