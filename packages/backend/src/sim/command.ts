import type { AetherFrame, ExecExitFields, ExecStartFields } from '@dsec/protocol';
import { assertNever, DsecError } from '@dsec/std';
import type { AgentContext } from './agent-context.ts';
import { type AgentLink, errorFrame, type Outgoing, type StreamOwner } from './agent-link.ts';
import { createInlet, type Inlet } from './inlet.ts';
import { createOutlet } from './outlet.ts';
import { type ProcessEnd, SIGKILL, type SimProcess } from './processes.ts';
import type { HeldOutlet, ProgramSetting, TerminalSize } from './program.ts';

/** For processes that end just after the leader and write their last lines then. */
const GRACE_MS = 100;
const SIGWINCH = 28;

/** A command from its start until its result is acknowledged. It belongs to no connection. */
export interface SimCommand {
  readonly id: string;
  readonly setting: Omit<ProgramSetting, 'env' | 'cwd'>;
  /** Its first process has started; `ended` settles when it has ended. */
  started(leader: SimProcess, ended: Promise<ProcessEnd>): void;
  /** It could not be started: remembered like an exit. */
  failed(error: unknown): void;
  /** Makes a stream its own; one that it had before is ended. */
  attach(link: AgentLink, stream: number, isKnown: boolean): void;
  /** Goes on from these offsets; false when the bytes from there on are not kept. */
  resume(stdoutOffset: number, stderrOffset: number): boolean;
  /** Goes on from what was acknowledged. */
  repeat(): void;
  readonly isOver: boolean;
  /** Its result was acknowledged: nothing more is sent. */
  forget(): void;
}

interface State {
  readonly context: AgentContext;
  readonly fields: ExecStartFields;
  readonly input: Inlet;
  readonly stdout: HeldOutlet;
  readonly stderr: HeldOutlet;
  readonly terminal: TerminalSize | undefined;
  readonly tree: Set<SimProcess>;
  readonly startedMs: number;
  leader: SimProcess | undefined;
  end: ProcessEnd | undefined;
  runningMs: number;
  failure: unknown;
  timedOut: boolean;
  endedByPolicy: boolean;
  timeout: AbortController | undefined;
  link: AgentLink | undefined;
  stream: number;
  isKnown: boolean;
  owesStarted: boolean;
  exitSent: boolean;
}

export function createCommand(context: AgentContext, fields: ExecStartFields): SimCommand {
  const state = createState(context, fields);
  const { stdout, stderr } = state;
  return {
    id: fields.execId,
    setting: {
      processes: context.processes,
      programs: context.programs,
      files: context.files,
      input: state.input,
      outputs: { stdout, stderr: state.terminal === undefined ? stderr : stdout },
      terminal: state.terminal,
      tree: state.tree,
    },
    started(leader, ended) {
      state.leader = leader;
      state.owesStarted = true;
      limit(state, fields.timeoutMs);
      markReady(state);
      void ended.then((end) => finish(state, end));
    },
    failed(error) {
      state.failure = error;
      markReady(state);
    },
    attach: (link, stream, isKnown) => attach(state, link, stream, isKnown),
    resume(stdoutOffset, stderrOffset) {
      const { head, base } = stderr.outlet;
      if (stderrOffset < base || stderrOffset > head) return false;
      return stdout.outlet.resume(stdoutOffset) && stderr.outlet.resume(stderrOffset);
    },
    repeat() {
      stdout.outlet.resume(stdout.outlet.base);
      stderr.outlet.resume(stderr.outlet.base);
    },
    get isOver() {
      return state.end !== undefined || state.failure !== undefined;
    },
    forget() {
      state.link?.leave(state.stream);
      state.link = undefined;
    },
  };
}

function createState(context: AgentContext, fields: ExecStartFields): State {
  const ready = () => markReady(state);
  const held = (): HeldOutlet => ({
    outlet: createOutlet({ windowBytes: fields.windowBytes, keeps: true, onReady: ready }),
    holders: 0,
  });
  const state: State = {
    context,
    fields,
    input: createInlet(fields.stdinOpen, ready),
    stdout: held(),
    stderr: held(),
    terminal: fields.pty && { ...fields.pty },
    tree: new Set(),
    startedMs: context.time.nowMs(),
    leader: undefined,
    end: undefined,
    runningMs: 0,
    failure: undefined,
    timedOut: false,
    endedByPolicy: false,
    timeout: undefined,
    link: undefined,
    stream: 0,
    isKnown: false,
    owesStarted: false,
    exitSent: false,
  };
  // A terminal has one output.
  if (state.terminal !== undefined) state.stderr.outlet.end();
  return state;
}

function markReady({ link, stream }: State): void {
  link?.markReady(stream);
}

function finish(state: State, end: ProcessEnd): void {
  const { context, fields, stdout, stderr } = state;
  state.timeout?.abort();
  state.end = end;
  state.endedByPolicy = context.isHeld;
  state.runningMs = Math.round(context.time.nowMs() - state.startedMs);
  state.input.close();
  const cut = () => {
    stdout.outlet.end();
    stderr.outlet.end();
  };
  // A session's shell has said that the command's output is complete.
  if (fields.sessionId !== undefined) cut();
  else if (stdout.holders + stderr.holders > 0) void context.time.sleep(GRACE_MS).then(cut);
  markReady(state);
}

function limit(state: State, timeoutMs: number | undefined): void {
  const { context } = state;
  state.timeout?.abort();
  state.timeout = undefined;
  if (timeoutMs === undefined || state.end !== undefined) return;
  const timeout = new AbortController();
  state.timeout = timeout;
  const leftMs = timeoutMs - (context.time.nowMs() - state.startedMs);
  context.time.sleep(leftMs, timeout.signal).then(
    () => {
      state.timedOut = true;
      for (const process of state.tree) process.signal(SIGKILL);
    },
    () => {},
  );
}

function attach(state: State, link: AgentLink, stream: number, isKnown: boolean): void {
  if (state.link !== undefined) {
    const before = state.stream;
    state.link.leave(before);
    state.link.putError(before, new DsecError('conflict', 'attached on another stream'));
  }
  state.link = link;
  state.stream = stream;
  state.isKnown = isKnown;
  state.owesStarted = isKnown && state.leader !== undefined;
  state.exitSent = false;
  const owner: StreamOwner = {
    produce: () => produce(state),
    consume: (frame) => consume(state, frame),
    detached() {
      state.link = undefined;
    },
  };
  link.open(stream, owner);
  link.markReady(stream);
}

function produce(state: State): Outgoing | undefined {
  const { input, failure, link, stream } = state;
  if (failure !== undefined) {
    link?.leave(stream);
    state.link = undefined;
    link?.put(stream, errorFrame(failure));
    return undefined;
  }
  if (state.leader === undefined) return undefined;
  if (state.owesStarted) {
    state.owesStarted = false;
    const fields = {
      attached: state.isKnown,
      stdinOffset: input.taken,
      stdinCredit: input.credit,
    };
    return { type: 'exec-started', fields };
  }
  const answer = input.answer();
  if (answer !== undefined) return { ...answer, fields: { channel: 'stdin' } };
  const piece = state.stdout.outlet.take();
  if (piece !== undefined) return { type: 'stdout', ...piece };
  const other = state.stderr.outlet.take();
  if (other !== undefined) return { type: 'stderr', ...other };
  if (state.exitSent || !state.stdout.outlet.isDone || !state.stderr.outlet.isDone)
    return undefined;
  if (state.end === undefined) return undefined;
  state.exitSent = true;
  return { type: 'exec-exit', fields: exitFields(state, state.end) };
}

function exitFields(state: State, end: ProcessEnd): ExecExitFields {
  const { fields, stdout, stderr, context } = state;
  return {
    execId: fields.execId,
    ...(end.signal === undefined ? { exitCode: end.exitCode } : { signal: end.signal }),
    coreDumped: false,
    timedOut: state.timedOut,
    ...(state.endedByPolicy ? { endedByPolicy: true } : {}),
    trusted: fields.sessionId === undefined,
    stdoutBytes: stdout.outlet.head,
    stderrBytes: stderr.outlet.head,
    runningMs: state.runningMs,
    cpuUserUs: 0,
    cpuSystemUs: 0,
    memoryPeakBytes: context.processes.memoryPeakBytes,
  };
}

function consume(state: State, frame: AetherFrame): void {
  switch (frame.type) {
    case 'stdin':
      state.input.take(frame.offset, frame.data, frame.end);
      break;
    case 'ack':
      outletOf(state, frame.fields.channel).acknowledge(frame.offset);
      break;
    case 'credit':
      outletOf(state, frame.fields.channel).grant(frame.offset);
      break;
    case 'signal':
      signal(state, frame.fields.signal, frame.fields.scope);
      break;
    case 'resize':
      resize(state, frame.fields);
      break;
    case 'timeout':
      limit(state, frame.fields.timeoutMs);
      break;
    case 'cancel':
    case 'error':
      state.link?.leave(state.stream);
      state.link = undefined;
      break;
    default:
      throw new DsecError('protocol', `${frame.type} on the stream of a command`);
  }
}

function outletOf(state: State, channel: 'stdin' | 'stdout' | 'stderr') {
  switch (channel) {
    case 'stdout':
      return state.stdout.outlet;
    case 'stderr':
      return state.stderr.outlet;
    case 'stdin':
      throw new DsecError('protocol', 'the agent grants stdin, and acknowledges it');
    default:
      return assertNever(channel);
  }
}

function signal(state: State, number: number, scope: 'leader' | 'tree'): void {
  const targets = scope === 'tree' ? state.tree : state.leader && [state.leader];
  for (const process of targets ?? []) process.signal(number);
}

function resize({ terminal, tree }: State, size: TerminalSize): void {
  if (terminal === undefined) throw new DsecError('protocol', 'there is no terminal to resize');
  terminal.rows = size.rows;
  terminal.columns = size.columns;
  for (const process of tree) process.signal(SIGWINCH);
}
