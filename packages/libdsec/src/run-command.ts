import { type Exec, type ExecSpec, ROUTES } from '@dsec/protocol';
import { DAY_MS, fromErrorBody, MIB } from '@dsec/std';
import { type Asked, askedOfExec } from './asked.ts';
import {
  AgentLostError,
  CommandFailed,
  clientErrorOf,
  type DsecError,
  StateConflictError,
} from './errors.ts';
import type { ExecResult } from './exec-result.ts';
import { type ExecPlace, resultOf } from './output.ts';
import { present } from './pages.ts';
import { startWait, type Wait } from './patience.ts';
import type { Server } from './server.ts';
import { createStdin } from './stdin.ts';

/** How long one request waits for the end of a command. */
const WAIT_MS = 30_000;
/** Longer than anything runs: what is written to standard input waits for the command. */
const FEED_MS = 20 * DAY_MS;
export const RESULT_BYTES_MAX = 64 * MIB;

export interface RunOptions {
  readonly stdin?: Uint8Array | undefined;
  readonly check?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Runs a command to its end. Without standard input and with little output that is one request. */
export async function runCommand(
  server: Server,
  sandboxId: string,
  spec: ExecSpec,
  { stdin, check = false, signal }: RunOptions,
): Promise<ExecResult> {
  const body = { ...spec, ...(stdin === undefined ? { waitMs: WAIT_MS } : { stdin: true }) };
  const settings = { signal, timeoutMs: server.timeoutMs + WAIT_MS };
  const started = await server.call(ROUTES.startExec, { params: { sandboxId }, body }, settings);
  const place = { sandboxId, execId: started.exec.id };
  const exec = await (stdin === undefined
    ? waitForEnd(server, place, started.exec, startWait(undefined, ''), signal)
    : feed(server, place, started.exec, stdin, signal));
  const { outputBytesMax = RESULT_BYTES_MAX } = spec;
  const ended = ran(exec, askedOfExec(spec, exec));
  const result = await resultOf(server, place, ended, started, outputBytesMax, signal);
  if (check && !result.ok) throw new CommandFailed(result);
  return result;
}

/** Writes standard input while the command runs. One that does not read it all just ends. */
async function feed(
  server: Server,
  place: ExecPlace,
  exec: Exec,
  data: Uint8Array,
  caller: AbortSignal | undefined,
): Promise<Exec> {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, ...(caller === undefined ? [] : [caller])]);
  const stdin = createStdin(server, place, 0);
  const settings = { signal, timeoutMs: FEED_MS };
  const fed = stdin
    .write(data, settings)
    .then(() => stdin.end(settings))
    .catch((thrown: unknown) => {
      const hasEnded = over.signal.aborted || thrown instanceof StateConflictError;
      if (!hasEnded) throw thrown;
    });
  const ended = waitForEnd(server, place, exec, startWait(undefined, ''), signal);
  // A write that failed is the news, and then nobody waits for the end any more.
  ended.catch(() => {});
  try {
    return await Promise.race([ended, fed.then(() => ended)]);
  } finally {
    over.abort(clientErrorOf(new DOMException('the command has ended', 'AbortError')));
    await fed.catch(() => {});
  }
}

/** Asks until a command has ended. Throws `Timeout` when the wait is over first. */
export async function waitForEnd(
  server: Server,
  params: ExecPlace,
  first: Exec | undefined,
  wait: Wait,
  signal: AbortSignal | undefined,
): Promise<Exec> {
  let exec = first;
  while (exec === undefined || !hasEnded(exec)) {
    const waitMs = exec === undefined ? 0 : wait.leftMs(WAIT_MS);
    const settings = { signal, timeoutMs: server.timeoutMs + waitMs };
    exec = await server.call(ROUTES.getExec, { params, query: present({ waitMs }) }, settings);
  }
  return exec;
}

/** One way or another. */
export function hasEnded({ state }: Exec): boolean {
  return state === 'exited' || state === 'failed' || state === 'unknown';
}

/** A command that ran to an end that is known; of another one, why not. */
export function ran(exec: Exec, asked?: Asked): Exec {
  const error = failureOf(exec, asked);
  if (error !== undefined) throw error;
  return exec;
}

/** Why a command that has ended has no result. */
export function failureOf(exec: Exec, asked: Asked = {}): DsecError | undefined {
  if (exec.state === 'exited') return undefined;
  const known = { program: exec.command, ...asked };
  if (exec.error !== undefined) return clientErrorOf(fromErrorBody(exec.error), undefined, known);
  return new AgentLostError('agent-lost', `how the command ${exec.id} ended is not known`);
}
