import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type AnswerMessage, type Commands, OPENED, type WorkerRole } from './messages.ts';

/** A process of its own, in a mount namespace of its own, that does what it is asked. */
export interface Worker<C extends Commands> {
  readonly pid: number;
  call<Name extends keyof C & string>(
    command: Name,
    input: Parameters<C[Name]>[0],
  ): Promise<Awaited<ReturnType<C[Name]>>>;
  /** Resolves when it has undone everything that it made and has ended; rejects when something is left. */
  close(): Promise<void>;
}

const ENTRY = fileURLToPath(new URL('./main.js', import.meta.url));

/** With `DSEC_BENCH_PROFILE=DIRECTORY` each worker leaves a CPU profile there. */
function profileOptions(): readonly string[] {
  const directory = process.env.DSEC_BENCH_PROFILE;
  return directory === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${directory}`];
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/**
 * Starts a worker and waits until it is open. In a session of its own, so that Ctrl-C reaches it through
 * `close` alone; when this process dies, or the signal aborts, it closes by itself and its calls reject.
 */
export async function startWorker<C extends Commands>(
  role: WorkerRole,
  options: unknown,
  signal: AbortSignal,
): Promise<Worker<C>> {
  const node = [process.execPath, ...profileOptions(), ENTRY, role];
  const args = ['-m', '--propagation', 'private', ...node];
  const log = openLog();
  const child = spawn('unshare', [...args, JSON.stringify(options)], {
    stdio: ['ignore', log.fd, log.fd, 'ipc'],
    detached: true,
    serialization: 'advanced',
  });
  const waiting = new Map<number, Waiting>();
  const ended = endOf(child, waiting);
  void ended.then(log.close);
  child.on('message', (message: AnswerMessage) => {
    const call = waiting.get(message.id);
    waiting.delete(message.id);
    if ('error' in message) call?.reject(new Error(message.error));
    else call?.resolve(message.value);
  });
  const answer = (id: number) =>
    new Promise<unknown>((resolve, reject) => waiting.set(id, { resolve, reject }));
  const disconnect = () => child.connected && child.disconnect();
  signal.addEventListener('abort', disconnect, { once: true });
  let calls = OPENED;
  const call = async (command: string, input: unknown) => {
    signal.throwIfAborted();
    calls += 1;
    const answered = answer(calls);
    child.send({ id: calls, command, input });
    return answered;
  };
  await answer(OPENED).catch((error: Error) => {
    throw new Error(`${error.message}\n${log.tail()}`);
  });
  return {
    pid: child.pid ?? 0,
    call: call as Worker<C>['call'],
    async close() {
      signal.removeEventListener('abort', disconnect);
      disconnect();
      const code = await ended;
      const tail = log.tail();
      if (code !== 0) throw new Error(`the ${role} of the benchmark failed (${code})\n${tail}`);
    },
  };
}

const LOG_TAIL_BYTES = 2048;

/** What a worker says goes to a file, as a daemon's log does: its end is for the error. */
function openLog() {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-worker-'));
  const path = join(directory, 'log');
  const fd = openSync(path, 'a', 0o600);
  let end: string | undefined;
  const tail = () => end ?? readFileSync(path).subarray(-LOG_TAIL_BYTES).toString('utf8');
  return {
    ...{ fd, tail },
    close() {
      end = tail();
      closeSync(fd);
      rmSync(directory, { recursive: true });
    },
  };
}

function endOf(child: ChildProcess, waiting: Map<number, Waiting>): Promise<number | string> {
  return new Promise((resolve) => {
    const end = (how: number | string) => {
      const error = new Error(`a worker of the benchmark ended: ${how}`);
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
      resolve(how);
    };
    child.once('error', (error) => end(error.message));
    child.once('exit', (code, signal) => end(code ?? `${signal}`));
  });
}
