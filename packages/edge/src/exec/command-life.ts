/**
 * What happens to a command between its row and its outcome (THREATS §2.3, exec 1 to 4). Bytes are
 * acknowledged when they are in the spool, the exit when it is in the journal; a lost agent is called again,
 * and one that does not know the command any more makes it `unknown`.
 */
import type { AgentLink, StreamFrame, StreamSink } from '@dsec/backend';
import type { ExecExit, ExecExitFields } from '@dsec/protocol';
import { asDsecError, type Clock, DsecError, type ErrorCode, toErrorBody } from '@dsec/std';
import { createReceiveCredit } from '@dsec/transport';
import { crashPoint } from '../crash-point.ts';
import type { Journal } from '../journal/database.ts';
import type { EventLog } from '../journal/event-log.ts';
import type { ExecOutcome, ExecTable } from '../journal/exec-table.ts';
import type { SandboxEntry } from '../sandboxes.ts';
import type { Agents } from './agents.ts';
import type { Attachment, Command, OutputChannel } from './command.ts';
import { sendInputEnd } from './command-input.ts';
import type { ExitAcks } from './exit-acks.ts';
import { EXEC_WINDOW_BYTES, startFieldsOf } from './settled-spec.ts';

export interface LifeContext {
  readonly agents: Agents;
  readonly journal: Journal;
  readonly events: Pick<EventLog, 'append'>;
  readonly table: ExecTable;
  readonly clock: Clock;
  /** Kills by the sandbox's memory limit so far. */
  readonly oomKills: (entry: SandboxEntry) => Promise<number>;
  /** In the transaction that makes its end durable. */
  readonly onEnding: (command: Command, outcome: ExecOutcome) => void;
  /** It has ended and is durable. */
  readonly onEnded: (command: Command) => void;
  /** Tells agents what they may forget. */
  readonly exitAcks: ExitAcks;
}

const RETRY_MS = 250;
const SIGKILL = 9;
const CHANNELS = ['stdout', 'stderr'] as const;

/** Sends a command whose row is durable to the agent that the row names. */
export function startCommand(
  context: LifeContext,
  command: Command,
  link: AgentLink,
  trace?: Uint8Array,
): void {
  try {
    const attachment = openAttachment(context, command, link, true);
    const fields = startFieldsOf(command.row.id, command.row.spec, trace);
    crashPoint('exec.before-start');
    attachment.stream.send('exec-start', fields).catch((thrown) => {
      const error = asDsecError(thrown);
      if (error.code === 'invalid-argument') refuse(context, command, error);
    });
    crashPoint('exec.after-start');
  } catch (thrown) {
    detach(command);
    const error = asDsecError(thrown);
    // Nothing was sent: a link that closed before is made again.
    if (error.code === 'overloaded') refuse(context, command, error);
    else void attachCommand(context, command);
  }
}

/**
 * Finds a command again, through a new link or after a restart of the edge, and goes on where its spools
 * end. One that the agent has never heard of is started; with another agent it is `unknown`.
 */
export async function attachCommand(context: LifeContext, command: Command): Promise<void> {
  if (command.outcome || command.exit || command.attaching || command.attachment) return;
  if (command.entry.state !== 'running') return;
  command.attaching = true;
  try {
    const link = await context.agents.link(command.entry.key);
    command.attaching = false;
    if (command.outcome !== undefined) return;
    if (link.instance !== command.row.instance) {
      const other = new DsecError('agent-lost', 'the agent that ran the command is gone');
      return loseCommand(context, command, other);
    }
    const { stream } = openAttachment(context, command, link, false);
    const fields = {
      execId: command.row.id,
      stdoutOffset: command.stdout.receivedBytes,
      stderrOffset: command.stderr.receivedBytes,
    };
    // Lost with the link, which the sink hears of.
    void stream.send('exec-attach', fields).catch(() => {});
  } catch (thrown) {
    command.attaching = false;
    onLinkLost(context, command, asDsecError(thrown));
  }
}

/** The result will never come: it is not known, and none is made up. */
export function loseCommand(context: LifeContext, command: Command, error: DsecError): void {
  settleWith(context, command, { state: 'unknown', error: toErrorBody(error) });
}

function openAttachment(
  context: LifeContext,
  command: Command,
  link: AgentLink,
  isStart: boolean,
): Attachment {
  const sink: StreamSink = {
    frame: (frame) => takeFrame(context, command, attachment, frame),
    failed(error, fromAgent) {
      if (command.attachment !== attachment) return;
      if (!fromAgent) {
        detach(command);
        onLinkLost(context, command, error);
      } else if (isStart) refuse(context, command, error);
      else onAttachRefused(context, command, link, error);
    },
    inputCredit(upTo) {
      if (upTo < command.input.credit) throw new DsecError('protocol', 'credit went back');
      command.input.credit = upTo;
      command.changes.wakeAll();
    },
  };
  const attachment: Attachment = {
    link,
    stream: link.openSink(sink),
    credits: {
      stdout: createReceiveCredit(command.stdout.receivedBytes, EXEC_WINDOW_BYTES),
      stderr: createReceiveCredit(command.stderr.receivedBytes, EXEC_WINDOW_BYTES),
    },
    ready: false,
  };
  command.attachment = attachment;
  return attachment;
}

function detach(command: Command): void {
  command.attachment = undefined;
  command.changes.wakeAll();
}

function onLinkLost(context: LifeContext, command: Command, error: DsecError): void {
  if (command.exit !== undefined) return;
  const isFinal = error.code === 'agent-lost' || error.code === 'protocol';
  // A paused sandbox answers nobody; it is tried again when it runs.
  if (isFinal && command.entry.state === 'running') loseCommand(context, command, error);
  // By the edge, which closes: the next one finds the command again.
  else if (error.code !== 'cancelled') setImmediate(() => void attachCommand(context, command));
}

function onAttachRefused(
  context: LifeContext,
  command: Command,
  link: AgentLink,
  error: DsecError,
): void {
  // The row is older than the first frame, and no result of it was acknowledged: it was never sent.
  if (error.code === 'not-found' && !command.started) {
    detach(command);
    startCommand(context, command, link);
  } else if (command.started || error.code === 'not-found' || error.code === 'output-lost') {
    loseCommand(context, command, error);
  } else refuse(context, command, error);
}

/** It never ran. */
function refuse(context: LifeContext, command: Command, error: DsecError): void {
  settleWith(context, command, { state: 'failed', error: toErrorBody(refusalOf(error)) });
}

/** Why an agent may refuse a command. It is not believed when it says anything else. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'invalid-argument',
  'permission-denied',
  'not-found',
  'command-not-found',
  'state-conflict',
  'too-large',
  'overloaded',
  'unavailable',
  'unsupported',
  'storage-full',
]);

function refusalOf(error: DsecError): DsecError {
  if (REFUSALS.has(error.code)) return error;
  return new DsecError('unavailable', error.message, { cause: error, details: error.details });
}

function takeFrame(
  context: LifeContext,
  command: Command,
  attachment: Attachment,
  frame: StreamFrame,
): void {
  if (command.exit !== undefined) throw new DsecError('protocol', 'a frame behind an exit');
  switch (frame.type) {
    case 'stdout':
    case 'stderr': {
      attachment.credits[frame.type].receive(frame.offset, frame.data.byteLength);
      if (frame.data.byteLength === 0) return;
      const isDue = command[frame.type].push(frame.data);
      if (isDue) flush(context, command);
      else flushSoon(context, command);
      return;
    }
    case 'exec-started': {
      command.started = true;
      attachment.ready = true;
      command.input.offset = frame.fields.stdinOffset;
      command.input.credit = frame.fields.stdinCredit;
      command.input.endSent = false;
      sendInputEnd(command, attachment);
      command.changes.wakeAll();
      return;
    }
    case 'exec-exit':
      takeExit(context, command, frame.fields);
      return;
    default:
      throw new DsecError('protocol', `a command does not say ${frame.type}`);
  }
}

/** Many commands have their output written once in a turn of the event loop. */
function flushSoon(context: LifeContext, command: Command): void {
  if (command.flushDue) return;
  command.flushDue = true;
  setImmediate(() => {
    command.flushDue = false;
    flush(context, command);
  });
}

/** Writes what waits, and acknowledges it. Returns false when it could not be written yet. */
function flush(context: LifeContext, command: Command): boolean {
  for (const channel of CHANNELS) {
    const spool = command[channel];
    const before = spool.totalBytes;
    if (spool.receivedBytes === before) continue;
    let isWritten = false;
    try {
      spool.flush();
      isWritten = true;
    } catch {
      retrySoon(context, command);
    }
    // What was written before it failed counts as well.
    const written = spool.totalBytes - before;
    if (written > 0) {
      crashPoint('exec.after-spool');
      if (command.exit === undefined) acknowledge(command, channel, written);
    }
    if (!isWritten) return false;
  }
  return true;
}

function acknowledge(command: Command, channel: OutputChannel, bytes: number): void {
  const { attachment } = command;
  if (attachment === undefined) return;
  const grant = attachment.credits[channel].release(bytes);
  const lost = () => {};
  const { stream } = attachment;
  void stream.send('ack', { channel }, command[channel].totalBytes).catch(lost);
  if (grant !== undefined) void stream.send('credit', { channel }, grant).catch(lost);
}

/** The disk may have room again; until then the command waits, as nothing is acknowledged. */
function retrySoon(context: LifeContext, command: Command): void {
  if (command.retryDue) return;
  command.retryDue = true;
  void context.clock.sleep(RETRY_MS).then(() => {
    command.retryDue = false;
    if (flush(context, command) && command.exit !== undefined) void finish(context, command);
  });
}

function takeExit(context: LifeContext, command: Command, exit: ExecExitFields): void {
  if (exit.execId !== command.row.id) throw new DsecError('protocol', 'the exit of another');
  const isWhole =
    exit.stdoutBytes === command.stdout.receivedBytes &&
    exit.stderrBytes === command.stderr.receivedBytes;
  if (!isWhole) throw new DsecError('protocol', 'an exit before the end of the output');
  if ((exit.exitCode === undefined) === (exit.signal === undefined)) {
    throw new DsecError('protocol', 'an exit is a code or a signal');
  }
  command.exit = exit;
  crashPoint('exec.before-exit');
  if (flush(context, command)) void finish(context, command);
}

async function finish(context: LifeContext, command: Command): Promise<void> {
  const exit = command.exit;
  if (exit === undefined || command.outcome !== undefined) return;
  const isKilled = exit.signal === SIGKILL || exit.exitCode === 128 + SIGKILL;
  const isExplained = exit.timedOut || exit.endedByPolicy === true || command.killRequested;
  const oomKilled = isKilled && !isExplained && (await wasOomKilled(context, command));
  settleWith(context, command, {
    state: 'exited',
    exit: exitOf(exit, oomKilled),
    runningMs: exit.runningMs,
    cpuUs: exit.cpuUserUs + exit.cpuSystemUs,
    memoryPeakBytes: exit.memoryPeakBytes,
  });
}

/** Killed by SIGKILL while the sandbox's memory limit killed something. */
async function wasOomKilled({ oomKills }: LifeContext, command: Command): Promise<boolean> {
  try {
    return (await oomKills(command.entry)) > command.oomKillsBefore;
  } catch {
    return false;
  }
}

function exitOf(exit: ExecExitFields, oomKilled: boolean): ExecExit {
  const { exitCode, signal, coreDumped, timedOut, trusted, endedByPolicy } = exit;
  return {
    ...(exitCode === undefined ? {} : { exitCode }),
    ...(signal === undefined ? {} : { signal }),
    ...{ coreDumped, timedOut, oomKilled, trusted },
    ...(endedByPolicy === true ? { endedByPolicy } : {}),
  };
}

type Result = Omit<ExecOutcome, 'endedAtMs' | 'stdout' | 'stderr'>;

/** Makes the outcome durable, then lets the agent forget the command. Tried again until it is. */
function settleWith(context: LifeContext, command: Command, result: Result): void {
  if (command.outcome !== undefined) return;
  const { stdout, stderr } = command;
  try {
    for (const spool of [stdout, stderr]) {
      spool.flush();
      spool.end();
    }
    const outcome: ExecOutcome = {
      ...result,
      endedAtMs: context.clock.wallMs(),
      stdout: stdout.totals(),
      stderr: stderr.totals(),
    };
    endRow(context, command, outcome);
    command.outcome = outcome;
  } catch {
    void context.clock.sleep(RETRY_MS).then(() => settleWith(context, command, result));
    return;
  }
  crashPoint('exec.after-exit');
  forget(context, command);
  context.onEnded(command);
  command.changes.wakeAll();
}

/** The end and its event are there together, or not at all. */
function endRow(context: LifeContext, command: Command, outcome: ExecOutcome): void {
  const { journal, table, events, onEnding } = context;
  const { row, entry } = command;
  const { project, principal, job } = entry;
  journal.transaction(() => {
    if (!table.end(row.id, outcome)) return;
    onEnding(command, outcome);
    events.append({
      type: 'exec-exit',
      ...{ project, principal, sandbox: entry.id, exec: row.id },
      ...(job === undefined ? {} : { job }),
      ...(outcome.exit === undefined ? {} : { exit: outcome.exit }),
    });
  });
}

/** The agent need not remember the command any more. */
function forget({ exitAcks }: LifeContext, command: Command): void {
  const { attachment, row } = command;
  command.attachment = undefined;
  if (attachment === undefined) return;
  attachment.stream.leave();
  exitAcks.add(attachment.stream, row.id);
}
