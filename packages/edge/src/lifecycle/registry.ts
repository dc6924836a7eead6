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
import { createChangeFeed } from './change-feed.ts';
import { expiryOf } from './deadlines.ts';
import { type LiveSandbox, liveSandboxOf } from './live-sandbox.ts';

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
/** How much earlier than it was a use may seem after a restart, as a part of the idle time. */
const USE_PRECISION = 1 / 8;

export function createRegistry(parts: RegistryParts): Registry {
  const { clock, journal, table, events, wheel } = parts;
  const sandboxes = new Map<SandboxId, LiveSandbox>();
  const hooks: SandboxHooks[] = [];
  const feed = createChangeFeed(journal.epoch, sandboxes);

  const find = (id: SandboxId) => sandboxes.get(id);
  const get = (id: SandboxId) => {
    const sandbox = sandboxes.get(id);
    if (sandbox !== undefined) return sandbox;
    throw new DsecError('not-found', `there is no sandbox ${id} on this edge`);
  };
  const changed = (sandbox: LiveSandbox) => {
    feed.changed(sandbox);
    for (const waiter of [...sandbox.waiters]) waiter();
  };
  const tell = (sandbox: LiveSandbox, from: SandboxState) => {
    for (const hook of hooks) {
      if (sandbox.state === 'running') hook.running?.(sandbox, from);
      if (sandbox.state === 'paused') hook.paused?.(sandbox);
      if (isEndState(sandbox.state)) hook.ended?.(sandbox);
    }
  };
  const appendEvent = (sandbox: LiveSandbox, state: SandboxState, revision: number, end?: string) =>
    events.append({
      type: 'sandbox-state',
      ...{ project: sandbox.project, principal: sandbox.principal, sandbox: sandbox.id },
      ...(sandbox.job === undefined ? {} : { job: sandbox.job }),
      ...{ state, revision },
      ...(end === undefined ? {} : { endReason: end as Sandbox['endReason'] & string }),
    });

  const change: Registry['change'] = (sandbox, to, patch = {}) => {
    const from = sandbox.state;
    const state = to === from ? from : transition(from, to);
    const moving = { ...sandbox.moving, ...patch };
    const revision = sandbox.revision + 1;
    journal.transaction(() => {
      table.save(sandbox.id, state, revision, moving);
      if (state !== from) appendEvent(sandbox, state, revision, moving.endReason);
      journal.afterCommit(() => {
        Object.assign(sandbox, { state, revision, moving });
        changed(sandbox);
        if (state !== from) tell(sandbox, from);
      });
    });
  };

  return {
    find,
    get,
    list: () => sandboxes.values(),
    view: (entry) => viewOf(get(entry.id), parts),
    insert(row, slot) {
      if (sandboxes.has(row.id)) {
        throw new DsecError('already-exists', `there is a sandbox ${row.id} already`);
      }
      const sandbox = liveSandboxOf(row, slot);
      journal.transaction(() => {
        table.insert(row);
        table.takeSlot({ slot, id: row.id });
        appendEvent(sandbox, row.state, row.revision);
        journal.afterCommit(() => {
          sandboxes.set(row.id, sandbox);
          changed(sandbox);
        });
      });
      return sandbox;
    },
    restore(rows, slotOf) {
      for (const row of rows) {
        const sandbox = liveSandboxOf(row, slotOf.get(row.id));
        sandboxes.set(row.id, sandbox);
        changed(sandbox);
      }
    },
    change,
    announce: (sandbox) => tell(sandbox, sandbox.state),
    forget(sandbox) {
      journal.transaction(() => {
        table.remove(sandbox.id);
        journal.afterCommit(() => {
          sandboxes.delete(sandbox.id);
          for (const waiter of [...sandbox.waiters]) waiter();
          for (const hook of hooks) hook.forgotten?.(sandbox.id);
        });
      });
    },
    nextSequence(entry) {
      const sandbox = get(entry.id);
      if (sandbox.sequence >= sandbox.sequenceReserved) {
        const through = sandbox.sequence + SEQUENCE_BLOCK;
        journal.transaction(() => table.reserveSequence(sandbox.id, through));
        sandbox.sequenceReserved = through;
      }
      sandbox.sequence += 1;
      return sandbox.sequence;
    },
    touch(entry) {
      const sandbox = find(entry.id);
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
    },
    noteFirstCommand(entry) {
      const sandbox = get(entry.id);
      const { timings } = sandbox.moving;
      const { requestedMonotonicMs } = sandbox;
      if (timings.firstCommandMs !== undefined || requestedMonotonicMs === undefined) return;
      const firstCommandMs = clock.monotonicMs() - requestedMonotonicMs;
      change(sandbox, sandbox.state, { timings: { ...timings, firstCommandMs } });
    },
    waitForChange: (entry, revision, waitMs, signal) =>
      waitForChange(get(entry.id), revision, waitMs, signal),
    changes: feed.read,
    hook: (added) => {
      hooks.push(added);
    },
  };
}

function viewOf(sandbox: LiveSandbox, { edgeId, clock }: RegistryParts): Sandbox {
  const { id, state, revision, project, principal, spec, layers, moving } = sandbox;
  const { endReason, error, runtime, endedAtMs, timings } = moving;
  const expiry = isEndState(state) ? undefined : expiryOf(sandbox);
  return {
    ...{ id, state, revision, edge: edgeId, project, principal, spec, layers, timings },
    createdAtMs: sandbox.createdAtMs,
    protections: [...(runtime?.protections ?? [])],
    ...(endReason === undefined ? {} : { endReason }),
    ...(error === undefined ? {} : { error: toErrorBody(error) }),
    ...(endedAtMs === undefined ? {} : { endedAtMs }),
    ...(runtime === undefined ? {} : { upperDriver: runtime.upperDriver }),
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
