/** One process of `dsec up`: started, watched, started again, ended. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { type Clock, DsecError, type ErrorCode, fromErrorBody, SECOND_MS } from '@dsec/std';
import { createBackoff } from './backoff.ts';
import type { LogFile } from './log-file.ts';

export interface PartOptions {
  /** `edge`, `apiserver`. */
  readonly name: string;
  /** The program and its arguments. It prints one line of JSON with `ready` when it serves. */
  readonly argv: readonly [string, ...string[]];
  readonly log: LogFile;
  readonly clock: Clock;
  /** Of something that the user may want to know, as that it is started again. */
  notice(text: string): void;
}

export interface Part {
  /** What it said when it was first ready. Rejects with why it cannot be, and then it is ended. */
  readonly ready: Promise<Readonly<Record<string, unknown>>>;
  readonly pid: number | undefined;
  /** Asks it to end, and after a while makes it. */
  stop(): Promise<void>;
}

/** To answer what was asked. */
const STOP_GRACE_MS = 15 * SECOND_MS;
/** The one before it may still be on its way out, with its locks and its port. */
const FIRST_START_MS = 20 * SECOND_MS;
const QUIET_MS = 500;
/** What passes by itself. */
const PASSING: readonly ErrorCode[] = [
  ...(['conflict', 'already-exists', 'unavailable', 'overloaded', 'internal'] as const),
];

type Ready = Readonly<Record<string, unknown>>;

export function startPart(options: PartOptions): Part {
  const { name, clock, notice } = options;
  const stopping = new AbortController();
  let child: ChildProcess | undefined;
  const backoff = createBackoff();
  const begunMs = clock.monotonicMs();

  const life = async (onReady: (ready: Ready) => void): Promise<void> => {
    for (let wasReady = false; !stopping.signal.aborted; ) {
      const startedMs = clock.monotonicMs();
      const run = launch(options);
      child = run.child;
      const ready = await run.ready;
      if (ready !== undefined) {
        wasReady = true;
        onReady(ready);
      }
      const failure = explained(await run.ended);
      if (stopping.signal.aborted) return;
      const isEarly = clock.monotonicMs() - begunMs < FIRST_START_MS;
      if (!wasReady && !(isEarly && PASSING.includes(failure.code))) throw failure;
      const waitMs = backoff.next(clock.monotonicMs() - startedMs);
      // The first failure to start may well be an older one that has not ended yet.
      if (wasReady || waitMs > QUIET_MS) notice(`${failure.message}; starting it again`);
      await clock.sleep(waitMs, stopping.signal).catch(() => undefined);
    }
    throw new DsecError('cancelled', `${name} was stopped before it served`);
  };

  let settled: Promise<void> = Promise.resolve();
  const ready = new Promise<Ready>((resolve, reject) => {
    settled = life(resolve).catch(reject);
  });
  return {
    ready,
    get pid() {
      return child?.pid;
    },
    async stop() {
      stopping.abort();
      const last = child;
      last?.kill('SIGTERM');
      const timer = setTimeout(() => last?.kill('SIGKILL'), STOP_GRACE_MS);
      await settled.finally(() => clearTimeout(timer));
    },
  };
}

/** The launcher's word for it; nothing makes it pass but another id. */
const FOREIGN_EDGE_ID = 'edge id of another state root';

function explained(failure: DsecError): DsecError {
  // The last of its words: those before are of earlier attempts.
  if (failure.message.split('; ').at(-1)?.includes(FOREIGN_EDGE_ID) !== true) return failure;
  return new DsecError(
    'invalid-argument',
    'sandboxes of another state directory run under this edge id on this machine: choose another ' +
      'with --edge-id, or end that dsec up and its sandboxes',
    { cause: failure, details: { field: 'edge-id' } },
  );
}

interface Run {
  readonly child: ChildProcess;
  /** Undefined when it ended before. */
  readonly ready: Promise<Ready | undefined>;
  /** Why it ended. */
  readonly ended: Promise<DsecError>;
}

function launch({ name, argv: [file, ...args], log }: PartOptions): Run {
  const position = log.position();
  // In a session of its own, so that Ctrl-C is for the supervisor, who ends its parts in order.
  const child = spawn(file, args, {
    stdio: ['pipe', 'pipe', log.fd],
    env: { ...process.env, DSEC_END_WITH_STDIN: '1' },
    detached: true,
  });
  child.stdin?.on('error', () => undefined);
  let told: DsecError | undefined;
  const ready = readWords(child.stdout as Readable, (error) => {
    told = error;
  });
  const ended = new Promise<DsecError>((resolve) => {
    child.on('error', (cause) => {
      resolve(new DsecError('internal', `${name} could not be started`, { cause }));
    });
    child.on('close', (code, signal) => {
      const how = signal === null ? `exit code ${code}` : signal;
      // One that was killed had nothing to say about it.
      const why = signal === null ? lastWord(log.tailFrom(position)) : '';
      resolve(told ?? new DsecError('internal', `${name} ended with ${how}${why}`));
    });
  });
  return { child, ready, ended };
}

const WORD_LENGTH_MAX = 500;

function lastWord(text: string): string {
  const line = text.trim().split('\n').at(-1) ?? '';
  return line === '' ? '' : `: ${line.slice(0, WORD_LENGTH_MAX)}`;
}

/** Its lines: that it is ready, or the error with which it ends. Others are passed over. */
function readWords(
  stdout: Readable,
  onError: (error: DsecError) => void,
): Promise<Ready | undefined> {
  return new Promise((resolve) => {
    createInterface({ input: stdout })
      .on('line', (line) => {
        const word = parseLine(line);
        if (word?.ready === true) resolve(word);
        const body = word?.error as Parameters<typeof fromErrorBody>[0] | undefined;
        if (body !== undefined) onError(fromErrorBody(body));
      })
      .on('close', () => resolve(undefined));
  });
}

function parseLine(line: string): Ready | undefined {
  try {
    return JSON.parse(line) as Ready;
  } catch {
    return undefined;
  }
}
