import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { asDsecError, DsecError, type ErrorBody, fromErrorBody } from '@dsec/std';
import type { LayerProgress } from './layer-progress.ts';
import type { WorkerJob, WorkerMessage, WorkerResults } from './worker-job.ts';

/**
 * Builds and hashing run in processes of their own (`layer-worker.ts`): they take seconds of CPU without
 * a pause, and whoever serves sandboxes on this event loop must not wait for them. A worker leads its own
 * process group, ends with its parent, and does one job.
 */

/** The compiled entry, also when this module itself runs from source. */
const WORKER_ENTRY = fileURLToPath(new URL('../dist/layer-worker.js', import.meta.url));
/** Three such spaces are memory that only dead objects fill; the default of 16 MiB saves little time here. */
const WORKER_FLAGS = ['--max-semi-space-size=4'];
/** What is kept of a worker's standard error, for the message when it dies without a word. */
const STDERR_BYTES_MAX = 4096;

/** The place of `inheritFd` behind the standard streams and the message channel. */
export const INHERITED_FD = 4;

export interface WorkerOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: LayerProgress) => void) | undefined;
  /** A descriptor that the worker gets as its number `INHERITED_FD`. It stays open here. */
  readonly inheritFd?: number | undefined;
}

/**
 * Runs one job to its end. An abort kills the worker at once and rejects with `cancelled`; a worker that
 * is killed for want of memory is `overloaded`, one that dies otherwise `internal`. When the promise
 * settles, the worker is gone, and with it its locks.
 */
export async function runInWorker<Type extends WorkerJob['type']>(
  job: Extract<WorkerJob, { type: Type }>,
  options: WorkerOptions = {},
): Promise<WorkerResults[Type]> {
  const { signal, onProgress } = options;
  throwIfAborted(signal);
  const worker = fork(WORKER_ENTRY, [], {
    detached: true,
    execArgv: WORKER_FLAGS,
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc', options.inheritFd ?? 'ignore'],
  });
  const kill = () => killGroup(worker);
  signal?.addEventListener('abort', kill, { once: true });
  try {
    const outcome = await superviseWorker(worker, job, onProgress);
    if (outcome.type === 'done') return outcome.result as WorkerResults[Type];
    throwIfAborted(signal);
    throw outcome.error;
  } finally {
    signal?.removeEventListener('abort', kill);
  }
}

type Outcome = { type: 'done'; result: unknown } | { type: 'failed'; error: DsecError };

function superviseWorker(
  worker: ChildProcess,
  job: WorkerJob,
  onProgress: WorkerOptions['onProgress'],
): Promise<Outcome> {
  return new Promise((resolve) => {
    let outcome: Outcome | undefined;
    const errorTail = tailOf(worker);
    worker.on('message', (message: WorkerMessage) => {
      if (message.type === 'progress') onProgress?.(message.progress);
      else if (message.type === 'done') outcome = { type: 'done', result: message.result };
      else outcome = { type: 'failed', error: errorOf(message.error) };
    });
    // Also when the process could not be started at all; `close` then does not come.
    worker.on('error', (thrown) => {
      if (worker.pid === undefined) resolve({ type: 'failed', error: asDsecError(thrown) });
    });
    worker.on('close', (code, signal) => {
      const error = deathOf(signal ?? `exit code ${code}`, errorTail());
      resolve(outcome ?? { type: 'failed', error });
    });
    // A failure to send shows as the worker's end.
    worker.send(job, () => {});
  });
}

/**
 * Nothing of ours sends SIGKILL but an abort, which the caller knows of: it is the kernel's OOM killer, or
 * an operator. Node itself aborts when its heap is full.
 */
function deathOf(how: string, lastWords: string): DsecError {
  const why = lastWords || 'no message';
  if (
    how === 'SIGKILL' ||
    /heap out of memory|allocation failed|OOMDetails|OOMFailure/i.test(lastWords)
  ) {
    return new DsecError(
      'overloaded',
      `the layer worker was killed (${how}), most likely for want of memory; ` +
        `free memory or allow more, then try again: ${why}`,
    );
  }
  return new DsecError('internal', `the layer worker ended by ${how}: ${why}`);
}

function errorOf(body: ErrorBody): DsecError {
  return fromErrorBody(body);
}

function tailOf(worker: ChildProcess): () => string {
  let tail = Buffer.alloc(0);
  worker.stderr?.on('data', (piece: Buffer) => {
    tail = Buffer.concat([tail, piece]).subarray(-STDERR_BYTES_MAX);
  });
  return () => tail.toString('utf8').trim();
}

function killGroup(worker: ChildProcess): void {
  if (worker.pid === undefined || worker.exitCode !== null || worker.signalCode !== null) return;
  try {
    process.kill(-worker.pid, 'SIGKILL');
  } catch {
    worker.kill('SIGKILL'); // It has not become a group leader yet, or it is gone.
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) {
    throw new DsecError('cancelled', 'the layer operation was cancelled', { cause: signal.reason });
  }
}
