/**
 * The sandboxes of an edge, in memory as they are in the journal: a change is durable first, then visible,
 * then told (I3). Every change raises the revision of the sandbox and that of the edge.
 */
import type { Sandbox } from '@dsec/protocol';
import {
  type Clock,
  DsecError,
  type EdgeId,
  isEndState,
  type SandboxId,
  type SandboxState,
  toErrorBody,
  transition,
} from '@dsec/std';
import type { Journal } from '../journal/database.ts';
import type { EventLog } from '../journal/event-log.ts';
import type { MovingRecord, SandboxRow, SandboxTable } from '../journal/sandbox-table.ts';
import type { Sandboxes, SandboxHooks } from '../sandboxes.ts';
import type { TimerWheel } from '../timer-wheel.ts';
import { type ChangeFeed, createChangeFeed } from './change-feed.ts';
import { expiryOf, USE_PRECISION } from './deadlines.ts';
import { type LiveSandbox, liveSandboxOf, setMoving } from './live-sandbox.ts';

/** What needs no more than the records; the lifecycle adds the rest. */
export interface Registry extends Omit<Sandboxes, 'requireRunning' | 'fail'> {
  get(id: SandboxId): LiveSandbox;
  find(id: SandboxId): LiveSandbox | undefined;
  list(): Iterable<LiveSandbox>;
  /** In the running transaction; listed after it. Throws `already-exists`. */
  insert(row: SandboxRow, slot: number): LiveSandbox;
  /** Takes up what the journal holds; nothing is told. */
  restore(rows: readonly SandboxRow[], slotOf: ReadonlyMap<SandboxId, number>): void;
  /** Throws `state-conflict` for a transition that there is none of, and the journal's errors. */
  change(sandbox: LiveSandbox, to: SandboxState, patch?: Partial<MovingRecord>): void;
  /** Says that a sandbox found again at the start runs, or is paused. */
  announce(sandbox: LiveSandbox): void;
  /** Says that everything inside but the agent was ended. */
  quiesced(sandbox: LiveSandbox): void;
  /** Removes the row of an ended sandbox whose slot is free. */
  forget(sandbox: LiveSandbox): void;
}

export interface RegistryParts {
  readonly edgeId: EdgeId;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly table: SandboxTable;
  readonly events: EventLog;
  readonly wheel: TimerWheel;
}

/** So many numbers of operations are reserved by one write. */
const SEQUENCE_BLOCK = 1024;

/** What the functions of a registry share. */
interface State {
  readonly parts: RegistryParts;
  readonly sandboxes: Map<SandboxId, LiveSandbox>;
  readonly hooks: SandboxHooks[];
  readonly feed: ChangeFeed;
}

export function createRegistry(parts: RegistryParts): Registry {
  const sandboxes = new Map<SandboxId, LiveSandbox>();
  const feed = createChangeFeed(parts.journal.epoch, sandboxes);
  const state: State = { parts, sandboxes, feed, hooks: [] };
  const get = (id: SandboxId) => {
    const sandbox = sandboxes.get(id);
    if (sandbox !== undefined) return sandbox;
    throw new DsecError('not-found', `there is no sandbox ${id} on this edge`);
  };
  return {
    get,
    find: (id) => sandboxes.get(id),
    list: () => sandboxes.values(),
    view: (entry) => viewOf(get(entry.id), parts),
    insert: (row, slot) => insert(state, row, slot),
    restore(rows, slotOf) {
      for (const row of rows) {
        const sandbox = liveSandboxOf(row, slotOf.get(row.id));
        sandboxes.set(row.id, sandbox);
        noteChange(state, sandbox);
      }
    },
    change: (sandbox, to, patch = {}) => change(state, sandbox, to, patch),
    announce: (sandbox) => tell(state, sandbox, sandbox.state),
    quiesced(sandbox) {
      for (const hook of state.hooks) hook.quiesced?.(sandbox);
    },
    forget: (sandbox) => forget(state, sandbox),
    nextSequence: (entry) => nextSequence(parts, get(entry.id)),
    touch: (entry) => touch(parts, sandboxes.get(entry.id)),
    hold: (entry) => hold(parts, get(entry.id)),
    noteFirstCommand: (entry) => noteFirstCommand(state, get(entry.id)),
    waitForChange: (entry, revision, waitMs, signal) =>
      waitForChange(get(entry.id), revision, waitMs, signal),
    changes: feed.read,
    hook: (added) => {
      state.hooks.push(added);
    },
  };
}

function insert(state: State, row: SandboxRow, slot: number): LiveSandbox {
  const { sandboxes, parts } = state;
  const { journal, table } = parts;
  if (sandboxes.has(row.id)) {
    throw new DsecError('already-exists', `there is a sandbox ${row.id} already`);
  }
  const sandbox = liveSandboxOf(row, slot);
  // Its first operations need no write of their own for their numbers.
  sandbox.sequenceReserved = row.sequenceReserved + SEQUENCE_BLOCK;
  journal.transaction(() => {
    table.insert({ ...row, sequenceReserved: sandbox.sequenceReserved });
    table.takeSlot({ slot, id: row.id });
    appendEvent(parts, sandbox, row);
    journal.afterCommit(() => {
      sandboxes.set(row.id, sandbox);
      noteChange(state, sandbox);
    });
  });
  return sandbox;
}

function change(
  state: State,
  sandbox: LiveSandbox,
  to: SandboxState,
  patch: Partial<MovingRecord>,
): void {
  const { journal, table } = state.parts;
  const from = sandbox.state;
  const next = {
    state: to === from ? from : transition(from, to),
    revision: sandbox.revision + 1,
    moving: { ...sandbox.moving, ...patch },
  };
  journal.transaction(() => {
    table.save(sandbox.id, next.state, next.revision, next.moving);
    if (to !== from) appendEvent(state.parts, sandbox, next);
    journal.afterCommit(() => {
      sandbox.state = next.state;
      sandbox.revision = next.revision;
      setMoving(sandbox, next.moving);
      noteChange(state, sandbox);
      if (to !== from) tell(state, sandbox, from);
    });
  });
}

function forget({ parts, sandboxes, hooks }: State, sandbox: LiveSandbox): void {
  const { journal, table } = parts;
  journal.transaction(() => {
    table.remove(sandbox.id);
    journal.afterCommit(() => {
      sandboxes.delete(sandbox.id);
      wakeWaiters(sandbox);
      for (const hook of hooks) hook.forgotten?.(sandbox.id);
    });
  });
}

function noteChange({ feed }: State, sandbox: LiveSandbox): void {
  feed.changed(sandbox);
  wakeWaiters(sandbox);
}

function wakeWaiters({ waiters }: LiveSandbox): void {
  for (const waiter of [...waiters]) waiter();
}

function tell({ hooks }: State, sandbox: LiveSandbox, from: SandboxState): void {
  for (const hook of hooks) {
    if (sandbox.state === 'running') hook.running?.(sandbox, from);
    if (sandbox.state === 'paused') hook.paused?.(sandbox);
    if (isEndState(sandbox.state)) hook.ended?.(sandbox);
  }
}

function appendEvent(
  { events }: RegistryParts,
  { project, principal, id, job }: LiveSandbox,
  { state, revision, moving }: Pick<SandboxRow, 'state' | 'revision' | 'moving'>,
): void {
  const { endReason } = moving;
  events.append({
    ...{ type: 'sandbox-state', project, principal, sandbox: id, state, revision },
    ...(job === undefined ? {} : { job }),
    ...(endReason === undefined ? {} : { endReason }),
  });
}

function nextSequence({ journal, table }: RegistryParts, sandbox: LiveSandbox): number {
  if (sandbox.sequence >= sandbox.sequenceReserved) {
    const through = sandbox.sequence + SEQUENCE_BLOCK;
    journal.transaction(() => table.reserveSequence(sandbox.id, through));
    sandbox.sequenceReserved = through;
  }
  sandbox.sequence += 1;
  return sandbox.sequence;
}

function touch({ wheel, table }: RegistryParts, sandbox: LiveSandbox | undefined): void {
  if (sandbox === undefined) return;
  sandbox.lastUsedBootMs = wheel.nowMs();
  const { idleMs } = sandbox.ttl;
  const unsavedMs = sandbox.lastUsedBootMs - sandbox.lastUsedSavedBootMs;
  if (idleMs === undefined || unsavedMs < idleMs * USE_PRECISION) return;
  sandbox.lastUsedSavedBootMs = sandbox.lastUsedBootMs;
  try {
    table.saveLastUsed(sandbox.id, sandbox.lastUsedBootMs);
  } catch {
    // A full disk must not keep anybody from using it; a later use is saved.
  }
}

function hold(parts: RegistryParts, sandbox: LiveSandbox): () => void {
  sandbox.holds += 1;
  touch(parts, sandbox);
  return () => {
    sandbox.holds -= 1;
    touch(parts, sandbox);
  };
}

function noteFirstCommand(state: State, sandbox: LiveSandbox): void {
  const { timings, requestedMonotonicMs } = sandbox;
  if (timings.firstCommandMs !== undefined || requestedMonotonicMs === undefined) return;
  const firstCommandMs = state.parts.clock.monotonicMs() - requestedMonotonicMs;
  change(state, sandbox, sandbox.state, { timings: { ...timings, firstCommandMs } });
}

function viewOf(sandbox: LiveSandbox, { edgeId, clock }: RegistryParts): Sandbox {
  const { id, state, revision, project, principal, spec, layers, moving, network, stage } = sandbox;
  const { endReason, error, runtime, endedAtMs, timings } = moving;
  const expiry = isEndState(state) ? undefined : expiryOf(sandbox, clock.bootMs());
  return {
    ...{ id, state, revision, edge: edgeId, project, principal, spec, layers, timings },
    createdAtMs: sandbox.createdAtMs,
    protections: [...(runtime?.protections ?? [])],
    ...(endReason === undefined ? {} : { endReason }),
    ...(error === undefined ? {} : { error: toErrorBody(error) }),
    ...(endedAtMs === undefined ? {} : { endedAtMs }),
    ...(runtime === undefined ? {} : { upperDriver: runtime.upperDriver }),
    ...(network === undefined ? {} : { network }),
    ...(stage === undefined ? {} : { stage }),
    ...(expiry === undefined
      ? {}
      : { expiresAtMs: Math.max(0, Math.round(clock.wallMs() + expiry - clock.bootMs())) }),
  };
}

function waitForChange(
  sandbox: LiveSandbox,
  revision: number,
  waitMs: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (sandbox.revision > revision) return Promise.resolve(true);
  return new Promise((resolve, reject) => {
    const done = (settle: () => void) => {
      sandbox.waiters.delete(onChange);
      signal?.removeEventListener('abort', onAbort);
      clearTimeout(timer);
      settle();
    };
    const onChange = () => done(() => resolve(true));
    const onAbort = () => done(() => reject(signal?.reason));
    const timer = setTimeout(() => done(() => resolve(false)), waitMs);
    if (signal?.aborted) return onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    sandbox.waiters.add(onChange);
  });
}
