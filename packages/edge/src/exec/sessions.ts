/**
 * Persistent shells: they keep their directory and variables between commands. What they say about their
 * commands is the sandbox's own word (THREATS A5).
 */
import type { Session } from '@dsec/protocol';
import { asDsecError, type Clock, DsecError, newExecId, type Random } from '@dsec/std';
import type { Journal } from '../journal/database.ts';
import type { EventLog } from '../journal/event-log.ts';
import type { Idempotency } from '../journal/idempotency.ts';
import type { SessionRow, SessionTable } from '../journal/session-table.ts';
import type { KeyedContext, OperationContext } from '../operation.ts';
import type { SandboxEntry, Sandboxes } from '../sandboxes.ts';
import type { Agents } from './agents.ts';
import type { SessionPage, SessionSpec } from './exec-shapes.ts';
import { cursorOf, PAGE_LIMIT_DEFAULT, type PageQuery, sequenceOfCursor } from './listing.ts';
import { createSessionWatch } from './session-watch.ts';
import { settleSession } from './settled-spec.ts';

export interface SessionsOptions {
  readonly journal: Pick<Journal, 'transaction'>;
  readonly events: Pick<EventLog, 'append'>;
  readonly sandboxes: Sandboxes;
  readonly agents: Agents;
  readonly table: SessionTable;
  readonly idempotency: Idempotency;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Sessions {
  /** Starts a shell, once for each idempotency key. Rejects with what the agent says. */
  open(entry: SandboxEntry, spec: SessionSpec, context: KeyedContext): Promise<Session>;
  list(entry: SandboxEntry, query: PageQuery): SessionPage;
  /** Ends the shell and every process that it has left. Idempotent; `not-found` for one that never was. */
  close(entry: SandboxEntry, id: string, context: OperationContext): Promise<void>;
  /** The shell has ended; told once, as an event. */
  ended(entry: SandboxEntry, id: string): void;
}

export function createSessions(options: SessionsOptions): Sessions {
  const { sandboxes, agents, table, idempotency, clock, random } = options;
  const ended = (entry: SandboxEntry, id: string) => endSession(options, entry, id);
  const watch = createSessionWatch({ agents, clock, onEnd: ended });
  sandboxes.hook({
    running(entry, from) {
      if (from === 'creating') return;
      for (const row of table.listOpen(entry.id)) watch(entry, row);
    },
  });
  sandboxes.hook({
    quiesced(entry) {
      for (const { id } of table.listOpen(entry.id)) endSession(options, entry, id, true);
    },
  });
  const opening = new Map<string, Promise<void>>();

  const rowOf = (entry: SandboxEntry, id: string): SessionRow => {
    const row = table.find(entry.id, id);
    if (row !== undefined) return row;
    throw new DsecError('not-found', `there is no session ${id} in the sandbox`);
  };

  return {
    async open(entry, spec, context) {
      const { caller, idempotencyKey: key, requestDigest } = context;
      const settled = settleSession(spec, entry.defaults);
      const scope = { caller, route: 'openSession', sandbox: entry.id, key };
      const { id } = await idempotency.run(scope, requestDigest, async () => {
        await sandboxes.requireRunning(entry.id, { startsCommand: true });
        const { instance } = await agents.link(entry.key);
        return () => {
          const row: SessionRow = {
            ...{ id: newSessionId(random), sandbox: entry.id, generation: entry.generation },
            ...{ sequence: sandboxes.nextSequence(entry), instance, spec: settled },
            ...{ state: 'opening', createdAtMs: clock.wallMs() },
          };
          table.insert(row);
          return row.id;
        };
      });
      const row = rowOf(entry, id);
      if (row.state === 'opening') {
        const begin = () => openInside(options, entry, row).then(() => watch(entry, row));
        const work = opening.get(id) ?? begin();
        opening.set(id, work);
        await work.finally(() => opening.delete(id));
      }
      return viewOf(entry, rowOf(entry, id));
    },
    list(entry, { limit = PAGE_LIMIT_DEFAULT, cursor }) {
      const rows = table.list(entry.id, sequenceOfCursor(cursor), limit + 1);
      const page = rows.slice(0, limit);
      const sessions = page.map((row) => viewOf(entry, row));
      return { sessions, ...cursorOf(rows.length > limit ? page.at(-1) : undefined) };
    },
    async close(entry, id, { signal }) {
      const row = rowOf(entry, id);
      if (!isOpen(entry, row)) return;
      await sandboxes.requireRunning(entry.id, { signal });
      const link = await agents.link(entry.key, signal);
      await link.request('session-close', { sessionId: id }, signal).catch((thrown) => {
        if (asDsecError(thrown).code !== 'not-found') throw thrown;
      });
      ended(entry, id);
    },
    ended,
  };
}

/** Asks the agent, which may have it already when an edge died on the way. */
async function openInside(
  { agents, table }: SessionsOptions,
  entry: SandboxEntry,
  row: SessionRow,
): Promise<void> {
  try {
    const link = await agents.link(entry.key);
    await link.request('session-open', fieldsOf(row));
    table.setState(row.id, 'open');
  } catch (thrown) {
    const { code } = asDsecError(thrown);
    table.setState(row.id, code === 'already-exists' ? 'open' : 'closed');
    if (code !== 'already-exists') throw thrown;
  }
}

/** The end and its event are there together, or not at all. */
function endSession(
  { journal, table, events }: SessionsOptions,
  entry: SandboxEntry,
  session: string,
  endedByPolicy = false,
): void {
  const { project, principal, job, id: sandbox } = entry;
  journal.transaction(() => {
    if (!table.close(session)) return;
    events.append({
      ...{ type: 'session-end', project, principal, sandbox, session },
      ...(job === undefined ? {} : { job }),
      ...(endedByPolicy ? { endedByPolicy } : {}),
    });
  });
}

function fieldsOf({ id, spec }: SessionRow) {
  const { argv, cwd, env, user, pty } = spec;
  return {
    sessionId: id,
    ...(argv === undefined ? {} : { argv: argv.map((word) => Buffer.from(word)) }),
    ...(pty === undefined ? {} : { pty }),
    ...{ cwd: Buffer.from(cwd), env: env.map((line) => Buffer.from(line)), user },
  };
}

/** Sessions end with the life of their sandbox. */
function isOpen(entry: SandboxEntry, row: SessionRow): boolean {
  const isOfThisLife = row.generation === entry.generation && entry.endedAtMs === undefined;
  return row.state !== 'closed' && isOfThisLife;
}

function viewOf(entry: SandboxEntry, row: SessionRow): Session {
  const { id, sandbox, createdAtMs } = row;
  const open = row.state === 'open' && isOpen(entry, row);
  return { id, sandbox, open, trusted: false, createdAtMs };
}

/** `se-` and the random part of any other id. */
function newSessionId(random: Random): string {
  return newExecId(random).replace('ex-', 'se-');
}
