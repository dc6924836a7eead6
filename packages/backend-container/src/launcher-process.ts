import { type ChildProcess, spawn } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DsecError, type EdgeId, MIB, SECOND_MS, systemClock } from '@dsec/std';
import { connectUnix } from '@dsec/transport';
import { launcherCgroups } from './cgroup-layout.ts';

export interface LauncherProcessOptions {
  /** The programs `dsec-launcher` and `aether`. */
  readonly program: string;
  readonly agentProgram: string;
  /** Absolute, mode 0700. What the launcher says goes to `launcher.log` there; see `openLog`. */
  readonly stateRoot: string;
  readonly edgeId: EdgeId;
  /** Who may ask it for anything, beside root. */
  readonly edgeUid: number;
  /** Of the new process; default none. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface StartedLauncher {
  readonly socketPath: string;
  /** Undefined when one listened already. */
  readonly pid: number | undefined;
}

const START_TIMEOUT_MS = 10 * SECOND_MS;
const LOOK_MS = 5;
/** Of the log, in the error of one that does not start. */
const LOG_TAIL_BYTES = 1024;
const LOG_BYTES_MAX = MIB;

/**
 * Sees to it that a launcher listens at the state root: finds the one that is there, or starts one. It
 * is in a session and cgroups of its own, so that it outlives this process and whatever ends the service
 * that this is part of. Needs root. `unavailable` when it does not start.
 */
export async function startLauncher(options: LauncherProcessOptions): Promise<StartedLauncher> {
  const socketPath = join(options.stateRoot, 'run/launcher.sock');
  if (await listens(socketPath)) return { socketPath, pid: undefined };
  const child = launch(options);
  const endMs = systemClock.monotonicMs() + START_TIMEOUT_MS;
  for (;;) {
    if (await listens(socketPath)) break;
    if (child.exitCode !== null || child.signalCode !== null) throw notStarted(options, 'it ended');
    if (systemClock.monotonicMs() > endMs) throw notStarted(options, 'it does not listen');
    await systemClock.sleep(LOOK_MS);
  }
  // Another that was quicker holds the lock, and it is that one which listens.
  if (child.exitCode !== null || child.pid === undefined) return { socketPath, pid: undefined };
  leaveOwnCgroups(options.edgeId, child.pid);
  return { socketPath, pid: child.pid };
}

function launch({
  program,
  agentProgram,
  stateRoot,
  edgeId,
  edgeUid,
  env = {},
}: LauncherProcessOptions): ChildProcess {
  const log = openLog(stateRoot);
  try {
    const child = spawn(
      program,
      [
        ...['--state-root', stateRoot, '--edge-id', edgeId],
        ...['--edge-uid', `${edgeUid}`, '--aether', agentProgram],
      ],
      { detached: true, stdio: ['ignore', log, log], env: { ...env } },
    );
    // A program that cannot be run shows as one that does not listen.
    child.on('error', () => {});
    child.unref();
    return child;
  } finally {
    closeSync(log);
  }
}

/**
 * A launcher says why it does not start, in a line, and nothing later: only starts that fail again and
 * again make the log long. A new one makes room; the file before it is kept beside it.
 */
function openLog(stateRoot: string): number {
  const path = join(stateRoot, 'launcher.log');
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes >= LOG_BYTES_MAX) renameSync(path, `${path}.1`);
  return openSync(path, 'a', 0o600);
}

function listens(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectUnix(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function leaveOwnCgroups(edgeId: EdgeId, pid: number): void {
  for (const directory of launcherCgroups(edgeId)) {
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'cgroup.procs'), `${pid}`);
  }
}

function notStarted({ stateRoot, program }: LauncherProcessOptions, how: string): DsecError {
  const log = readFileSync(join(stateRoot, 'launcher.log')).subarray(-LOG_TAIL_BYTES);
  const words = log.toString('utf8').trim().split('\n').slice(-3).join('; ');
  return new DsecError('unavailable', `${program} did not start: ${how}: ${words || 'no message'}`);
}
