// @ts-check
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Every process of a run carries this variable, and so do their children, whatever session they move to. */
export const RUN_VARIABLE = 'DSEC_TEST_RUN';

const GRACE_MS = 3000;
const POLL_MS = 100;

/** Folders that Node and its tools keep for themselves in the temporary folder. */
const TOOL_FOLDERS = /^(node-compile-cache|v8-compile-cache|tsx|vitest)/;

/**
 * @typedef {object} Process
 * @property {number} pid
 * @property {string} started Start time in ticks: with the pid it names one process for ever.
 * @property {string} command
 */

/**
 * Processes of the run that are still there after a moment of grace. They are ended.
 *
 * @param {string} runId
 * @returns {Promise<string[]>} Their command lines.
 */
export async function endLeftoverProcesses(runId) {
  const untilMs = performance.now() + GRACE_MS;
  let left = processesOf(runId);
  while (left.length > 0 && performance.now() < untilMs) {
    await delay(POLL_MS);
    left = processesOf(runId);
  }
  for (const { pid, started } of left) {
    try {
      if (startOf(pid) === started) process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
  return left.map(({ pid, command }) => `process ${pid}: ${command}`);
}

/** @param {string} runId @returns {Process[]} */
function processesOf(runId) {
  const mark = `${RUN_VARIABLE}=${runId}`;
  const found = [];
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(mark)) continue;
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      found.push({ pid, started: startOf(pid), command });
    } catch {
      // It has ended, or belongs to somebody else.
    }
  }
  return found;
}

/** @param {number} pid */
function startOf(pid) {
  // The name in parentheses may hold spaces: count the fields after it.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return fields[19] ?? '';
}

/**
 * The mounts of this namespace that tests may have left behind: EROFS and overlay ones, and all below the
 * run's folder.
 *
 * @param {string} folder The run's temporary folder.
 * @param {string} [mountinfo]
 * @returns {string[]}
 */
export function testMounts(folder, mountinfo = readFileSync('/proc/self/mountinfo', 'utf8')) {
  return mountinfo
    .split('\n')
    .filter((line) => / - (erofs|overlay) /.test(line) || line.includes(folder))
    .map((line) => `mount ${line}`);
}

/**
 * What a suite left in its temporary folder.
 *
 * @param {string} folder
 * @returns {string[]}
 */
export function leftoverFiles(folder) {
  return readdirSync(folder)
    .filter((name) => !TOOL_FOLDERS.test(name))
    .map((name) => `file ${folder}/${name}`);
}
