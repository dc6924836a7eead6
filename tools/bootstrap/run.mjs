// @ts-check
import { spawn } from 'node:child_process';

/** Lines of output kept for an error message. */
const TAIL_LINES_MAX = 40;
/** Characters of stdout kept for callers that read it. */
const STDOUT_CHARS_MAX = 4 << 20;
const KILL_GRACE_MS = 3000;

/**
 * @typedef {object} RunResult
 * @property {number} code Exit code; 128 + n when signal n ended it; 127 when it could not be started.
 * @property {string} stdout The first 4 MiB of it.
 * @property {string} tail The last lines of both streams.
 * @property {boolean} timedOut
 */

/**
 * @typedef {object} RunOptions
 * @property {string} [cwd]
 * @property {Record<string, string | undefined>} [env] Added to ours.
 * @property {number} timeoutMs After it the whole process group is ended.
 * @property {(line: string) => void} [onLine] Called with each line of output.
 * @property {number} [inheritFd] A descriptor that the command and its children keep open as 3.
 */

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

/**
 * Runs a command in a session of its own, so that it and all its children can be ended together. Never
 * rejects: the caller looks at `code`.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {RunOptions} options
 * @returns {Promise<RunResult>}
 */
export function run(command, args, options) {
  return new Promise((resolve) => {
    /** @type {string[]} */
    const tail = [];
    let stdout = '';
    let timedOut = false;
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      detached: true,
      stdio: [
        'ignore',
        'pipe',
        'pipe',
        ...(options.inheritFd === undefined ? [] : [options.inheritFd]),
      ],
    });
    running.add(child);
    const timer = setTimeout(() => {
      timedOut = true;
      endGroup(child);
    }, options.timeoutMs);
    const keepLine = (/** @type {string} */ line) => {
      tail.push(line);
      if (tail.length > TAIL_LINES_MAX) tail.shift();
      options.onLine?.(line);
    };
    const flushers = [child.stdout, child.stderr].map((stream, index) =>
      readLines(stream, keepLine, (text) => {
        if (index === 0 && stdout.length < STDOUT_CHARS_MAX) stdout += text;
      }),
    );
    const finish = (/** @type {number} */ code) => {
      clearTimeout(timer);
      running.delete(child);
      for (const flush of flushers) flush();
      resolve({ code, stdout, tail: tail.join('\n'), timedOut });
    };
    child.on('error', (error) => {
      keepLine(error.message);
      finish(127);
    });
    child.on('close', (code, signal) => finish(code ?? 128 + signalNumber(signal)));
  });
}

/** Ends every command that is still running; says whether there was one. For a handler of signals. */
export function endAllRunning() {
  for (const child of running) endGroup(child);
  return running.size > 0;
}

/** @param {import('node:child_process').ChildProcess} child */
function endGroup(child) {
  const signal = (/** @type {NodeJS.Signals} */ name) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, name);
    } catch {
      // The group is gone already.
    }
  };
  signal('SIGTERM');
  setTimeout(() => running.has(child) && signal('SIGKILL'), KILL_GRACE_MS).unref();
}

/**
 * @param {import('node:stream').Readable | null} stream
 * @param {(line: string) => void} onLine
 * @param {(text: string) => void} onText
 * @returns {() => void} Hands over a last line without an end.
 */
function readLines(stream, onLine, onText) {
  let rest = '';
  stream?.setEncoding('utf8');
  stream?.on('data', (/** @type {string} */ text) => {
    onText(text);
    const lines = (rest + text).split(/[\r\n]+/);
    rest = (lines.pop() ?? '').slice(-4096);
    for (const line of lines) if (line.trim() !== '') onLine(line);
  });
  return () => {
    if (rest.trim() !== '') onLine(rest);
  };
}

/** @param {NodeJS.Signals | null} signal */
function signalNumber(signal) {
  return signal === 'SIGKILL' ? 9 : 15;
}
