// @ts-check
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const KILL_GRACE_MS = 5000;
/** A child that left the group may hold our pipes open; we do not wait for it longer than this. */
const PIPE_GRACE_MS = 3000;
const OUTPUT_CHARS_MAX = 8 << 20;

/**
 * @typedef {object} CommandResult
 * @property {number | undefined} code Undefined when a signal ended it or it could not start.
 * @property {string} output The last 8 MiB of both streams.
 * @property {boolean} timedOut
 */

/** @type {Set<number>} */
const groups = new Set();

/**
 * Runs one command of a suite in a process group of its own.
 *
 * @param {readonly string[]} command
 * @param {{
 *   cwd: string,
 *   env: Record<string, string | undefined>,
 *   limitMs: number,
 *   onOutput: (text: string) => void,
 *   onEvent: (line: string) => void,
 * }} options `onEvent` gets the lines that the command writes to descriptor 3.
 * @returns {Promise<CommandResult>}
 */
export function runCommand(command, { cwd, env, limitMs, onOutput, onEvent }) {
  const [program = '', ...args] = command;
  return new Promise((resolve) => {
    let output = '';
    let timedOut = false;
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    if (child.pid !== undefined) groups.add(child.pid);
    const keep = (/** @type {string} */ text) => {
      output = (output + text).slice(-OUTPUT_CHARS_MAX);
      onOutput(text);
    };
    const pipes = /** @type {import('node:stream').Readable[]} */ (child.stdio.slice(1));
    for (const pipe of pipes.slice(0, 2)) pipe.setEncoding('utf8').on('data', keep);
    const events = pipes[2];
    if (events !== undefined) createInterface({ input: events }).on('line', onEvent);
    const limit = setTimeout(() => {
      timedOut = true;
      endGroup(child.pid);
    }, limitMs);
    /** @param {number | null} code */
    const finish = (code) => {
      clearTimeout(limit);
      if (child.pid !== undefined) groups.delete(child.pid);
      resolve({ code: code ?? undefined, output, timedOut });
    };
    child.on('error', (error) => {
      keep(`${error.message}\n`);
      finish(null);
    });
    child.on('exit', () => {
      setTimeout(() => pipes.forEach((pipe) => void pipe.destroy()), PIPE_GRACE_MS).unref();
    });
    child.on('close', finish);
  });
}

/** Ends the group of every command that still runs. */
export function endAllGroups() {
  for (const pid of groups) endGroup(pid);
}

/** @param {number | undefined} pid */
function endGroup(pid) {
  if (pid === undefined) return;
  signalGroup(pid, 'SIGTERM');
  setTimeout(() => groups.has(pid) && signalGroup(pid, 'SIGKILL'), KILL_GRACE_MS).unref();
}

/** @param {number} pid @param {NodeJS.Signals} signal */
function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone already.
  }
}
