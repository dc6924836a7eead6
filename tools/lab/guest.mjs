// @ts-check
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { hasCommand } from '../bootstrap/host.mjs';
import { cpioArchive } from './cpio.mjs';
import { GuestFailure } from './failure.mjs';
import { PORTS, QEMU, qemuArguments } from './qemu.mjs';

const CONSOLE_LINES_SHOWN = 30;
const STDERR_CHARS_MAX = 4096;
const KILL_GRACE_MS = 3000;

/**
 * @typedef {object} Job
 * @property {string} script Run by the guest's shell as root in the repository; its exit code is the job's.
 * @property {number} timeoutMs From the start of the guest to its end.
 * @property {number} bootTimeoutMs From the start of the guest to that of its job.
 * @property {boolean} [terminal] Gives the guest our terminal as hvc0.
 * @property {NodeJS.WritableStream} stdout
 * @property {NodeJS.WritableStream} stderr
 * @property {(bytes: Buffer) => void} [onEvents] Gets what the job writes to the port `lab.events`, as it
 *   comes.
 * @property {(milestone: Milestone) => void} [onMilestone]
 * @property {AbortSignal} [signal] Ends the guest.
 */

/**
 * @typedef {object} Milestone
 * @property {string} name `kernel`: the first process runs; `job`: the job starts; `end`: it has ended.
 * @property {number} uptimeMs The guest's, since its kernel started.
 * @property {number} elapsedMs Ours, since QEMU was started.
 */

/**
 * @typedef {object} JobResult
 * @property {number} code
 * @property {Buffer} report What the job wrote to the port `lab.report`.
 * @property {number} elapsedMs Until QEMU was gone.
 */

/**
 * Boots a guest, runs one job in it and ends it. Whatever happens, QEMU and all files of this run are gone
 * afterwards.
 *
 * @param {Omit<import('./qemu.mjs').Machine, 'sockets' | 'console' | 'terminal'>} machine
 * @param {Job} job
 * @returns {Promise<JobResult>} Throws `GuestFailure` when the guest died or ran out of time.
 */
export async function runGuest(machine, job) {
  const folder = mkdtempSync(join(tmpdir(), 'dsec-lab-'));
  const sockets = socketPaths(folder);
  const consolePath = join(folder, 'console');
  const initrd = join(folder, 'initrd');
  const script = cpioArchive([{ path: 'job.sh', type: 'file', data: job.script }]);
  writeFileSync(initrd, Buffer.concat([readFileSync(machine.initrd), script]));

  const startedMs = performance.now();
  const deadline = new AbortController();
  const progress = createProgress(job, startedMs, deadline);
  const report = /** @type {Buffer[]} */ ([]);
  const servers = await Promise.all([
    listen(sockets.milestones, (socket) => createInterface(socket).on('line', progress.onLine)),
    listen(sockets.stdout, (socket) => socket.pipe(job.stdout, { end: false })),
    listen(sockets.stderr, (socket) => socket.pipe(job.stderr, { end: false })),
    listen(sockets.events, (socket) => socket.on('data', (bytes) => job.onEvents?.(bytes))),
    listen(sockets.report, (socket) => socket.on('data', (bytes) => report.push(bytes))),
  ]);
  try {
    const terminal = job.terminal === true;
    const args = qemuArguments({ ...machine, initrd, sockets, console: consolePath, terminal });
    const signals = [deadline.signal, ...(job.signal === undefined ? [] : [job.signal])];
    const said = await runQemu(args, terminal, AbortSignal.any(signals));
    await Promise.all(servers.map((server) => server.drained()));
    const code = progress.code();
    if (code === undefined) throw progress.failure(`${said}\n${tailOf(consolePath)}`);
    return { code, report: Buffer.concat(report), elapsedMs: performance.now() - startedMs };
  } finally {
    progress.close();
    for (const server of servers) server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Follows the guest's milestones and keeps its two time limits.
 *
 * @param {Job} job
 * @param {number} startedMs
 * @param {AbortController} deadline Aborted when a limit is reached.
 */
function createProgress(job, startedMs, deadline) {
  let last = 'none';
  let hasStarted = false;
  /** @type {number | undefined} */
  let code;
  /** @type {{ kind: 'boot' | 'timeout', limitMs: number } | undefined} */
  let expired;
  const expire = (/** @type {'boot' | 'timeout'} */ kind, /** @type {number} */ limitMs) =>
    setTimeout(() => {
      expired ??= { kind, limitMs };
      deadline.abort();
    }, limitMs);
  const timers = [expire('timeout', job.timeoutMs), expire('boot', job.bootTimeoutMs)];
  return {
    onLine(/** @type {string} */ line) {
      const [name = '', value = ''] = line.split(' ');
      last = line;
      if (name === 'exit') code = Number(value);
      if (name === 'job') {
        hasStarted = true;
        clearTimeout(timers[1]);
      }
      const elapsedMs = performance.now() - startedMs;
      job.onMilestone?.({ name, uptimeMs: Number(value) * 1000, elapsedMs });
    },
    code: () => code,
    failure(/** @type {string} */ messages) {
      const kind = expired?.kind ?? (hasStarted ? 'died' : 'boot');
      const why = expired === undefined ? 'it died' : `it took over ${expired.limitMs / 1000} s`;
      return new GuestFailure(
        kind,
        `the guest failed: ${why} (it had come to: ${last})\n${messages}`,
      );
    },
    close() {
      for (const timer of timers) clearTimeout(timer);
    },
  };
}

/** @param {string} folder */
function socketPaths(folder) {
  const paths = PORTS.map((name) => [name, join(folder, name)]);
  return /** @type {Record<typeof PORTS[number], string>} */ (Object.fromEntries(paths));
}

/**
 * A unix socket for one connection, QEMU's.
 *
 * @param {string} path
 * @param {(socket: import('node:net').Socket) => void} onSocket
 */
async function listen(path, onSocket) {
  /** @type {import('node:net').Socket | undefined} */
  let peer;
  let closed = Promise.resolve();
  const server = createServer((socket) => {
    peer = socket;
    closed = new Promise((resolve) => socket.once('close', () => resolve()));
    // QEMU that is ended in the middle of a write resets the connection: the end, like any other.
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject).listen(path, () => resolve(undefined));
  });
  return {
    /** Everything that was sent has been handed over. */
    drained: () => closed,
    close() {
      peer?.destroy();
      server.close();
    },
  };
}

/**
 * @param {readonly string[]} args
 * @param {boolean} terminal
 * @param {AbortSignal} signal Ends it.
 * @returns {Promise<string>} When QEMU is gone: what it said.
 */
function runQemu(args, terminal, signal) {
  // QEMU ends with us even where we get no chance to end it.
  const [command, ...rest] = hasCommand('setpriv')
    ? ['setpriv', '--pdeathsig', 'KILL', '--', QEMU, ...args]
    : [QEMU, ...args];
  return new Promise((resolve, reject) => {
    const ours = terminal ? 'inherit' : 'ignore';
    const child = spawn(command, rest, { stdio: [ours, ours, 'pipe'] });
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      said = (said + text).slice(-STDERR_CHARS_MAX);
    });
    const end = () => {
      child.kill('SIGTERM');
      setTimeout(() => child.kill('SIGKILL'), KILL_GRACE_MS).unref();
    };
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
    child.once('error', reject);
    child.once('close', () => {
      signal.removeEventListener('abort', end);
      resolve(said);
    });
  });
}

/** The last messages of the guest's kernel. @param {string} path */
function tailOf(path) {
  try {
    const lines = readFileSync(path, 'utf8').trimEnd().split(/\r?\n/);
    return lines.slice(-CONSOLE_LINES_SHOWN).join('\n');
  } catch {
    return 'its kernel said nothing';
  }
}
