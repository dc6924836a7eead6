/**
 * Alarms of paths that a caller wants to stay as they are: looked at when the sandbox is ready, then again
 * and again, before it is stopped, and when somebody asks for its audit. A look costs the sandbox some reads
 * and resumes none that is paused; each change is told once.
 */
import { asDsecError, type Clock, type DsecError, type SandboxId, SECOND_MS } from '@dsec/std';
import type { FileOperation, FileOperationParts } from '../files/file-operation.ts';
import type { SandboxEntry, SandboxHooks } from '../sandboxes.ts';
import type { AuditLog } from './audit-log.ts';
import { differences, MARKS_MAX, markPaths, type PathMarks, pathText } from './path-marks.ts';

export interface WatchedPathsParts extends Omit<FileOperationParts, 'sandboxes'> {
  readonly sandboxes: {
    list(): Iterable<SandboxEntry>;
    find(id: SandboxId): SandboxEntry | undefined;
    hook(hooks: SandboxHooks): void;
  };
  readonly audit: Pick<AuditLog, 'note'>;
  readonly clock: Clock;
  readonly everyMs?: number;
  /** Told of what keeps a sandbox from being looked at. */
  readonly onFault?: (sandbox: SandboxId, error: DsecError) => void;
}

export interface WatchedPaths {
  /** Looks now, for so long. Never rejects. */
  check(id: SandboxId): Promise<void>;
  close(): void;
}

const EVERY_MS = 30 * SECOND_MS;
const LOOK_MS = 5 * SECOND_MS;
const NO_TRACE = new Uint8Array(25);

interface Watched {
  marks: PathMarks | undefined;
  looking: Promise<void> | undefined;
}

export function createWatchedPaths(parts: WatchedPathsParts): WatchedPaths {
  const { sandboxes, audit, clock, everyMs = EVERY_MS, onFault = () => {} } = parts;
  const watched = new Map<SandboxId, Watched>();
  const closing = new AbortController();

  const look = async (id: SandboxId, state: Watched) => {
    const entry = sandboxes.find(id);
    if (entry?.state !== 'running') return;
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(LOOK_MS)]);
    try {
      const operation = await operationOf(parts, entry, signal);
      const marks = await markPaths(operation, entry.spec.watchPaths ?? []);
      const before = state.marks;
      state.marks = marks;
      if (before !== undefined) tell(audit, id, before, marks);
      else if (marks.isCut) note(audit, id, 'too-many', `more than ${MARKS_MAX}`);
    } catch (thrown) {
      const error = asDsecError(thrown);
      const isOver = closing.signal.aborted || sandboxes.find(id)?.state !== 'running';
      if (isOver) return;
      onFault(id, error);
      note(audit, id, 'not-seen', error.code);
    }
  };
  const check = (id: SandboxId): Promise<void> => {
    const state = watched.get(id);
    if (state === undefined) return Promise.resolve();
    // Who asks in the middle of a look waits for one that begins later.
    const next = (state.looking ?? Promise.resolve()).then(() => look(id, state));
    state.looking = next;
    return next;
  };

  sandboxes.hook({
    running({ id, spec }, from) {
      if ((spec.watchPaths ?? []).length === 0 || watched.has(id)) return;
      watched.set(id, { marks: undefined, looking: undefined });
      // Nobody knows what was changed while no edge was there.
      if (from !== 'creating') note(audit, id, 'not-seen', 'before the restart of the edge');
      void check(id);
    },
    ended: ({ id }) => void watched.delete(id),
  });
  void rounds(() => [...watched.keys()], check, { clock, everyMs, signal: closing.signal });
  return { check, close: () => closing.abort() };
}

/** One sandbox after the other, so that many are no more load than a few. */
async function rounds(
  ids: () => readonly SandboxId[],
  check: (id: SandboxId) => Promise<void>,
  { clock, everyMs, signal }: { clock: Clock; everyMs: number; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(everyMs, signal).catch(() => undefined);
    for (const id of ids()) {
      if (signal.aborted) return;
      await check(id);
    }
  }
}

async function operationOf(
  { agents, backend, random }: WatchedPathsParts,
  entry: SandboxEntry,
  signal: AbortSignal,
): Promise<FileOperation> {
  return {
    ...{ entry, random, signal, trace: NO_TRACE },
    link: await agents.link(entry.key, signal),
    dial: (dialSignal) => backend.dial(entry.key, dialSignal),
    // To be looked at is no use of it.
    onUse: () => undefined,
  };
}

function tell(
  audit: Pick<AuditLog, 'note'>,
  id: SandboxId,
  before: PathMarks,
  after: PathMarks,
): void {
  const isWhole = !before.isCut && !after.isCut;
  for (const { path, reason } of differences(before.marks, after.marks)) {
    // Of what is looked at in part nobody knows what was there before.
    if (!isWhole && reason !== 'written' && reason !== 'replaced') continue;
    note(audit, id, reason, pathText(path));
  }
  if (after.isCut && !before.isCut) note(audit, id, 'too-many', `more than ${MARKS_MAX}`);
}

function note(audit: Pick<AuditLog, 'note'>, id: SandboxId, reason: string, target: string): void {
  audit.note(id, { type: 'tamper', at: 'watched-path', reason, target });
}
