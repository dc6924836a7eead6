/**
 * The commands of an edge as its routes see them. A command is started once, its output is kept outside the
 * process, and its end is durable before anybody hears of it.
 */
import type { Exec, ExecSpec, PtySize } from '@dsec/protocol';
import { type Clock, DsecError, type ExecId, newExecId, type Random } from '@dsec/std';
import { abortError } from '@dsec/transport';
import type { ExecRow, ExecTable } from '../journal/exec-table.ts';
import type { Idempotency } from '../journal/idempotency.ts';
import type { SessionTable } from '../journal/session-table.ts';
import { type KeyedContext, type OperationContext, traceBytes } from '../operation.ts';
import type { SandboxEntry, Sandboxes } from '../sandboxes.ts';
import type { Agents } from './agents.ts';
import { type Command, sendSignal, whenAttached } from './command.ts';
import { confirmInput, writeInput } from './command-input.ts';
import type { Commands } from './commands.ts';
import type {
  ExecPage,
  ExecQuery,
  SignalRequest,
  StartedExec,
  StdinAccepted,
  StdinQuery,
  TimeoutRequest,
} from './exec-shapes.ts';
import { inlineOutput, viewOfCommand, viewOfRow } from './exec-view.ts';
import { cursorOf, PAGE_LIMIT_DEFAULT, type PageQuery, sequenceOfCursor } from './listing.ts';
import { settleSpec } from './settled-spec.ts';

export interface ExecsOptions {
  readonly sandboxes: Sandboxes;
  readonly agents: Agents;
  readonly commands: Commands;
  readonly table: ExecTable;
  readonly sessions: Pick<SessionTable, 'find'>;
  readonly idempotency: Idempotency;
  readonly clock: Clock;
  readonly random: Random;
}

/** Every call throws `not-found` for a command that the sandbox does not have. */
export interface Execs {
  /**
   * Starts a command, once for each idempotency key, and with `waitMs` waits for its end. A paused sandbox is
   * resumed; one in its grace time starts nothing. The caller's leaving does not stop a command that has
   * been started. Throws `invalid-argument`, `state-conflict`, `overloaded`, `agent-lost`.
   */
  start(entry: SandboxEntry, spec: ExecSpec, context: KeyedContext): Promise<StartedExec>;
  /** With `waitMs` waits so long for its end. */
  get(entry: SandboxEntry, id: ExecId, query: ExecQuery, context: OperationContext): Promise<Exec>;
  /** In the order of start. `invalid-argument` for a cursor that is none. */
  list(entry: SandboxEntry, query: PageQuery): ExecPage;
  /** Resolves when the agent has taken all of the body; see `writeInput` for its errors. */
  writeStdin(
    entry: SandboxEntry,
    id: ExecId,
    query: StdinQuery,
    body: AsyncIterable<Uint8Array>,
    context: OperationContext,
  ): Promise<StdinAccepted>;
  /** At most once for each idempotency key. `state-conflict` when the command has ended. */
  signal(
    entry: SandboxEntry,
    id: ExecId,
    request: SignalRequest,
    context: KeyedContext,
  ): Promise<void>;
  /** `invalid-argument` for a command without terminal. */
  resize(entry: SandboxEntry, id: ExecId, size: PtySize, context: OperationContext): Promise<void>;
  setTimeout(
    entry: SandboxEntry,
    id: ExecId,
    request: TimeoutRequest,
    context: OperationContext,
  ): Promise<void>;
}

export function createExecs(options: ExecsOptions): Execs {
  const { sandboxes, commands, table, idempotency } = options;

  const aliveOf = (entry: SandboxEntry, id: ExecId): Command => {
    const { alive } = commands.find(entry, id);
    if (alive === undefined) throw new DsecError('state-conflict', 'the command has ended');
    sandboxes.touch(entry);
    return alive;
  };
  /** Its stream, in a sandbox that runs. */
  const streamOf = async (entry: SandboxEntry, id: ExecId, { signal }: OperationContext) => {
    const command = aliveOf(entry, id);
    await sandboxes.requireRunning(entry.id, { signal });
    return (await whenAttached(command, signal)).stream;
  };

  return {
    start: (entry, spec, context) => startExec(options, entry, spec, context),
    async get(entry, id, { waitMs = 0 }, { signal }) {
      const { alive, row } = commands.find(entry, id);
      if (alive === undefined) return viewOfRow(row);
      if (waitMs > 0) await waitForEnd(alive, waitMs, signal);
      return viewOfCommand(alive);
    },
    list(entry, { limit = PAGE_LIMIT_DEFAULT, cursor }) {
      const rows = table.list(entry.id, sequenceOfCursor(cursor), limit + 1);
      const page = rows.slice(0, limit).map(({ id }) => {
        const { alive, row } = commands.find(entry, id);
        return alive === undefined ? viewOfRow(row) : viewOfCommand(alive);
      });
      return { execs: page, ...cursorOf(rows.length > limit ? page.at(-1) : undefined) };
    },
    writeStdin: (...request) => writeStdin(options, ...request),
    async signal(entry, id, { signal, scope = 'leader' }, context) {
      const route = 'signalExec';
      const scoped = { caller: context.caller, route, sandbox: entry.id };
      const key = context.idempotencyKey;
      let send = async () => {};
      await idempotency.run({ ...scoped, key }, context.requestDigest, async () => {
        const command = aliveOf(entry, id);
        await streamOf(entry, id, context);
        send = () => sendSignal(command, { signal, scope }, context.signal);
        return () => id;
      });
      await send();
    },
    async resize(entry, id, size, context) {
      if (aliveOf(entry, id).row.spec.pty === undefined) {
        throw new DsecError('invalid-argument', 'the command has no terminal');
      }
      await (await streamOf(entry, id, context)).send('resize', size);
    },
    async setTimeout(entry, id, { timeoutMs }, context) {
      const stream = await streamOf(entry, id, context);
      // The agent knows no limit of 0: the least one ends the command as well.
      await stream.send(
        'timeout',
        timeoutMs === undefined ? {} : { timeoutMs: Math.max(1, timeoutMs) },
      );
    },
  };
}

async function startExec(
  options: ExecsOptions,
  entry: SandboxEntry,
  request: ExecSpec,
  context: KeyedContext,
): Promise<StartedExec> {
  const { sandboxes, agents, commands, idempotency, clock } = options;
  const { caller, idempotencyKey: key, requestDigest, signal } = context;
  const spec = settleSpec(request, entry.defaults);
  const { keptBytesDefault, keptBytesMax: most } = commands.limits;
  const keptBytesMax = Math.min(request.outputBytesMax ?? keptBytesDefault, most);
  const scope = { caller, route: 'startExec', sandbox: entry.id, key };
  // Not with the caller's signal: a repetition of the request may wait for this one.
  const { id } = await idempotency.run(scope, requestDigest, async () => {
    await sandboxes.requireRunning(entry.id, { startsCommand: true });
    if (spec.session !== undefined) checkSession(options, entry, spec.session);
    commands.admit(entry);
    const link = await agents.link(entry.key);
    return () => {
      // One by one, here and where a command is made of it: what is spread is slow to make.
      const row = {
        id: newExecId(options.random),
        sandbox: entry.id,
        generation: entry.generation,
        sequence: sandboxes.nextSequence(entry),
        instance: link.instance,
        spec,
        keptBytesMax,
        stdinEnd: undefined,
        startedAtMs: clock.wallMs(),
        outcome: undefined,
      };
      commands.begin(entry, row, link, traceBytes(context.traceparent));
      return row.id;
    };
  });
  const found = commands.find(entry, id as ExecId);
  if (found.alive !== undefined && (request.waitMs ?? 0) > 0) {
    await waitForEnd(found.alive, request.waitMs ?? 0, signal);
  }
  const exec = found.alive === undefined ? viewOfRow(found.row) : viewOfCommand(found.alive);
  const isAnswer = request.waitMs !== undefined && exec.stdout.ended && exec.stderr.ended;
  if (!isAnswer) return { exec };
  const { stdout, stderr } = commands.spools(found);
  return { exec, stdout: inlineOutput(stdout), stderr: inlineOutput(stderr) };
}

async function writeStdin(
  { commands, sandboxes, table }: ExecsOptions,
  entry: SandboxEntry,
  id: ExecId,
  { offset, end = false }: StdinQuery,
  body: AsyncIterable<Uint8Array>,
  { signal }: OperationContext,
): Promise<StdinAccepted> {
  const { alive: command, row } = commands.find(entry, id);
  if (command === undefined) return repeatStdin(row, offset, body);
  await sandboxes.requireRunning(entry.id, { signal });
  let at = offset;
  for await (const data of body) {
    await writeInput(command, table, { offset: at, data, end: false }, signal);
    at += data.byteLength;
  }
  if (end) {
    await writeInput(command, table, { offset: at, data: new Uint8Array(0), end }, signal);
  }
  return { offset: await confirmInput(command, signal) };
}

/** A command that has ended takes what it has taken before, or nothing: so its input may be ended late. */
async function repeatStdin(row: ExecRow, offset: number, body: AsyncIterable<Uint8Array>) {
  let at = offset;
  for await (const data of body) at += data.byteLength;
  if (at === offset && row.spec.stdin) return { offset: row.stdinEnd ?? offset };
  if (row.stdinEnd !== undefined && at <= row.stdinEnd) return { offset: row.stdinEnd };
  throw new DsecError('state-conflict', 'the command has ended');
}

function checkSession({ sessions }: ExecsOptions, entry: SandboxEntry, id: string): void {
  const session = sessions.find(entry.id, id);
  if (session?.state === 'open' && session.generation === entry.generation) return;
  throw new DsecError('not-found', `there is no open session ${id} in the sandbox`);
}

/** Resolves when the command has ended or the time is up. Rejects with the signal's error. */
function waitForEnd(command: Command, waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let leave = () => {};
    const settle = (how: () => void) => {
      leave();
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      how();
    };
    const look = () => {
      if (command.outcome !== undefined) settle(resolve);
      else leave = command.changes.once(look);
    };
    const onAbort = () => settle(() => reject(abortError(signal)));
    const timer = setTimeout(() => settle(resolve), waitMs);
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    look();
  });
}
