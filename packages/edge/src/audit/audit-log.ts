/**
 * What sandboxes try that they may not. Each has a table of its own, of so many rows, and what is over it is
 * a number: whatever one does, others lose nothing. Of each sandbox some are told as events, and of all
 * together too, so that the log of a node stays what it is for.
 */
import { createTokenBucket, type TokenBucket } from '@dsec/network';
import { AUDIT_ROWS_MAX, type AuditRecord, type AuditRow, type Event } from '@dsec/protocol';
import { type Clock, isEndState, type SandboxId } from '@dsec/std';
import type { EventLog } from '../journal/event-log.ts';
import type { Registry } from '../lifecycle/registry.ts';

type Attempt<T extends AuditRow['type']> = Extract<AuditRow, { type: T }>;
type Seen<T extends AuditRow['type']> = Omit<Attempt<T>, 'count' | 'firstAtMs' | 'lastAtMs'>;

/** One attempt, and how many others there were of which nothing else is known. */
export type AuditNote = (Seen<'denied'> & { readonly version: number }) | Seen<'tamper'>;

export interface AuditLog {
  /** Never throws; a sandbox that is not known, or has ended, tries nothing any more. */
  note(sandbox: SandboxId, note: AuditNote, others?: number): void;
  /** `undefined`: it has tried nothing. */
  find(sandbox: SandboxId): Pick<AuditRecord, 'sinceMs' | 'total' | 'lost' | 'rows'> | undefined;
  /** Since the start of the edge, by where it was. */
  readonly totals: ReadonlyMap<string, number>;
  readonly lostTotal: number;
}

export interface AuditLogParts {
  readonly registry: Pick<Registry, 'find' | 'hook'>;
  readonly events: Pick<EventLog, 'append'>;
  readonly clock: Clock;
  /** Of a sandbox, what whoever notes its attempts has only counted so far. */
  readonly untold: (sandbox: SandboxId) => number;
}

/** Events of one sandbox, and of all. */
const TOLD = { perSecond: 2, burst: 40 };
const TOLD_OF_ALL = { perSecond: 50, burst: 500 };

interface Tally {
  readonly sinceMs: number;
  readonly rows: Map<string, AuditRow & { count: number; lastAtMs: number }>;
  readonly bucket: TokenBucket;
  lost: number;
  /** Since the last event. */
  suppressed: number;
}

export function createAuditLog({ registry, events, clock, untold }: AuditLogParts): AuditLog {
  const tallies = new Map<SandboxId, Tally>();
  const ofAll = createTokenBucket(TOLD_OF_ALL);
  const totals = new Map<string, number>();
  let lostTotal = 0;
  const tallyOf = (sandbox: SandboxId) => {
    const known = tallies.get(sandbox);
    if (known !== undefined) return known;
    const bucket = createTokenBucket(TOLD);
    const fresh = { sinceMs: clock.wallMs(), rows: new Map(), bucket, lost: 0, suppressed: 0 };
    tallies.set(sandbox, fresh);
    return fresh;
  };
  const lose = (tally: Tally, count: number) => {
    tally.lost += count;
    lostTotal += count;
  };
  const tell = (event: Parameters<EventLog['append']>[0], tally: Tally) => {
    const nowMs = clock.monotonicMs();
    if (!tally.bucket.take(nowMs) || !ofAll.take(nowMs)) return false;
    try {
      events.append(event);
      return true;
    } catch {
      // A full disk, say: it is counted in the next one.
      return false;
    }
  };
  registry.hook({ forgotten: (id) => void tallies.delete(id) });
  return {
    note(id, note, others = 0) {
      const sandbox = registry.find(id);
      if (sandbox === undefined || isEndState(sandbox.state)) return;
      const tally = tallyOf(id);
      lose(tally, others);
      if (!count(tally, note, clock.wallMs())) lose(tally, 1);
      totals.set(note.at, (totals.get(note.at) ?? 0) + 1);
      const { project, principal, job } = sandbox;
      const about = { project, principal, sandbox: id, ...(job === undefined ? {} : { job }) };
      const event = { ...about, ...note, suppressed: tally.suppressed + others } as Untold;
      tally.suppressed = tell(event, tally) ? 0 : event.suppressed + 1;
    },
    find(id) {
      const tally = tallies.get(id);
      const waiting = untold(id);
      if (tally === undefined && waiting === 0) return undefined;
      const { sinceMs, rows, lost } = tally ?? tallyOf(id);
      const listed = [...rows.values()].map((row) => ({ ...row }));
      const known = listed.reduce((sum, row) => sum + row.count, 0);
      return { sinceMs, rows: listed, lost: lost + waiting, total: known + lost + waiting };
    },
    totals,
    get lostTotal() {
      return lostTotal;
    },
  };
}

type WithoutPlace<E> = E extends Event ? Omit<E, 'cursor' | 'atMs'> : never;
type Untold = WithoutPlace<Extract<Event, { type: 'denied' | 'tamper' }>>;

/** Whether there was room for it. */
function count({ rows }: Tally, note: AuditNote, nowMs: number): boolean {
  const { type, at, reason, target } = note;
  const port = note.type === 'denied' ? note.port : undefined;
  const name = JSON.stringify([type, at, reason, target, port]);
  const known = rows.get(name);
  if (known !== undefined) {
    known.count += 1;
    known.lastAtMs = nowMs;
    return true;
  }
  if (rows.size >= AUDIT_ROWS_MAX) return false;
  rows.set(name, {
    ...{ type, at, reason, count: 1, firstAtMs: nowMs, lastAtMs: nowMs },
    ...(target === undefined ? {} : { target }),
    ...(port === undefined ? {} : { port }),
  } as AuditRow & { count: number; lastAtMs: number });
  return true;
}
