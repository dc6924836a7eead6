#!/usr/bin/env node
// @ts-check
/**
 * Runs the test suites: `npm test` after the bootstrap. The last line alone is
 * `N passed, N failed, N skipped`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createReport } from './bootstrap/report.mjs';
import { FLOORS_FILE, judgeFloor, raiseFloors, readFloors } from './test/floors.mjs';
import { parseOptions, USAGE, UsageError } from './test/options.mjs';
import { countOf, recordOf } from './test/record.mjs';
import { endAllGroups } from './test/run-command.mjs';
import { logPath, runSuite } from './test/run-suite.mjs';
import { suites } from './test/suites.mjs';
import { summaryLines } from './test/summary.mjs';

/** @typedef {import('./test/record.mjs').TestRecord} TestRecord */
/** @typedef {import('./test/suites.mjs').Suite} Suite */
/** @typedef {{ suite: Suite, records: TestRecord[], durationMs: number }} SuiteResult */

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const report = createReport(process.stdout);
let isInterrupted = false;

for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => {
    isInterrupted = true;
    endAllGroups();
  });
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = EXIT_USAGE;
}

/** @param {readonly string[]} args */
async function main(args) {
  const names = suites(false).map(({ name }) => name);
  const options = parseOptions(args, names);
  if (options.help) process.stdout.write(USAGE);
  if (options.list)
    for (const { name, about } of suites(false)) report.say(`${name.padEnd(12)} ${about}`);
  if (options.help || options.list) return 0;

  const chosen = suites(options.long).filter(({ name }) => options.only?.includes(name) ?? true);
  const folder = mkdtempSync(join(tmpdir(), 'dsec-test-'));
  /** @type {SuiteResult[]} */
  const results = [];
  try {
    for (const suite of chosen) {
      if (!isInterrupted) results.push(await runOne(suite, folder, options.long));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  if (options.writeFloors) writeFloors(results);
  const floors = readFloors(join(root, FLOORS_FILE));
  for (const { suite, records } of results) {
    if (isInterrupted) break;
    const fault = judgeFloor(suite.name, countOf(records).passed, floors);
    if (fault !== undefined)
      records.push(recordOf(suite.name, 'floor', { state: 'failed', errors: [fault] }));
  }
  for (const line of summaryLines(results, floors)) report.say(line);
  const { passed, failed, skipped } = countOf(results.flatMap(({ records }) => records));
  if (isInterrupted) report.say('interrupted: what follows is not a result');
  report.say(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  if (isInterrupted) return EXIT_INTERRUPTED;
  return failed === 0 && passed > 0 ? 0 : EXIT_FAILED;
}

/**
 * @param {Suite} suite
 * @param {string} folder
 * @param {boolean} long
 * @returns {Promise<SuiteResult>}
 */
async function runOne(suite, folder, long) {
  /** @type {TestRecord[]} */
  const soFar = [];
  const inFile = new Map();
  report.start(suite.name);
  report.note(suite.about);
  const startedMs = performance.now();
  const records = await runSuite(suite, {
    root,
    folder,
    runId: basename(folder),
    long,
    isRoot: process.getuid?.() === 0,
    onRecord(record) {
      soFar.push(record);
      inFile.set(record.file, (inFile.get(record.file) ?? 0) + 1);
      report.progress(`${countLine(soFar)}  ${record.file}`);
      if (record.state === 'failed') {
        report.say(
          `FAILED ${suite.name}: ${record.file} › ${record.name}\n${indent(record.errors.join('\n'))}`,
        );
      }
    },
    onFile(file) {
      if (process.stdout.isTTY !== true) report.say(`    ${file}: ${inFile.get(file) ?? 0} tests`);
    },
  });
  const hasFailed = records.some(({ state }) => state === 'failed');
  report.done(`${countLine(records)}${hasFailed ? `; output in ${logPath(root, suite)}` : ''}`);
  return { suite, records, durationMs: performance.now() - startedMs };
}

/** @param {readonly SuiteResult[]} results */
function writeFloors(results) {
  const passed = results.map(({ suite, records }) => {
    return /** @type {const} */ ([suite.name, countOf(records).passed]);
  });
  raiseFloors(join(root, FLOORS_FILE), new Map(passed));
}

/** @param {readonly TestRecord[]} records */
function countLine(records) {
  const { passed, failed, skipped } = countOf(records);
  return [
    `${passed} passed`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
  ].join(', ');
}

/** @param {string} text */
function indent(text) {
  return text.replace(/^/gm, '    ');
}
