/**
 * What happened, in order, for those who follow: an append-only table whose newest part is kept. A reader
 * pulls from the table at its own speed, so that a slow one costs nothing and may be told that it has lost
 * something, never silently.
 */
import { setImmediate } from 'node:timers/promises';
import type { Event } from '@dsec/protocol';
import { type Clock, DsecError } from '@dsec/std';
import type { Journal } from './database.ts';
import type { JournalTable } from './schema.ts';

export const EVENT_TABLE: JournalTable = {
  name: 'events',
  migrations: [
    `CREATE TABLE events (sequence INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, body TEXT NOT NULL);
    CREATE TABLE event_horizon (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      trimmed_through INTEGER NOT NULL  -- events up to here are no longer kept
    );
    INSERT INTO event_horizon VALUES (1, 0)`,
  ],
};

export const EVENTS_KEPT_MAX = 100_000;
/** More than this many above the limit are trimmed at once. */
const TRIM_STEP = 1000;
const READ_BATCH = 256;
/**
 * Sequence numbers of an epoch begin at a multiple of this: none is ever given out twice, although the end
 * of the log may be lost with the power.
 */
const EPOCH_STRIDE = 2 ** 32;
const CURSOR = /^([0-9a-f]{16})-([0-9a-z]{1,11})$/;

type WithoutPlace<E> = E extends unknown ? Omit<E, 'cursor' | 'atMs'> : never;
/** An event as its maker knows it. */
export type NewEvent = WithoutPlace<Exclude<Event, { type: 'lost' }>>;

export interface EventLog {
  /** Appends in the running transaction, or in one of its own. Followers see it after the commit. */
  append(event: NewEvent): void;
  /** Of the newest event: who follows from it is told everything that comes later. */
  cursor(): string;
  /**
   * Events after a cursor, or from now on, without end; `undefined` when none came for `quietMs`. A cursor
   * whose events are no longer kept, or that is of another journal, gives a `lost` event first. The place is
   * taken at once; throws `invalid-argument` for what is no cursor. The iteration throws `unavailable` when
   * the log is closed.
   */
  follow(options: FollowOptions): AsyncIterable<Event | undefined>;
  /** Ends every follower. */
  close(): void;
}

export interface FollowOptions {
  readonly cursor?: string | undefined;
  readonly signal: AbortSignal;
  /** Only events for which it is true are told. */
  readonly filter?: (event: NewEvent) => boolean;
  readonly quietMs: number;
}

interface EventsPlace {
  /** The last event that is known. */
  readonly place: number;
  /** Whether something before it is lost. */
  readonly lost: boolean;
}

interface EventRow {
  readonly sequence: number;
  readonly at_ms: number;
  readonly body: string;
}

export function openEventLog(
  journal: Journal,
  clock: Clock,
  keptMax: number = EVENTS_KEPT_MAX,
): EventLog {
  const { db } = journal;
  const insert = db.prepare('INSERT INTO events VALUES (?, ?, ?)');
  const readAfter = db.prepare<[number, number], EventRow>(
    'SELECT * FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?',
  );
  const trim = createTrimmer(journal, keptMax);
  const followers = createFollowers();
  const ended = new AbortController();
  // Also the place before the first event of this epoch.
  let last = journal.epoch * EPOCH_STRIDE;
  let next = last;
  const wake = () => {
    last = next;
    followers.wake();
  };
  const formatCursor = (sequence: number) => `${journal.id}-${sequence.toString(36)}`;
  const placeOf = (cursor: string | undefined): EventsPlace => {
    if (cursor === undefined) return { place: last, lost: false };
    const { journalId, place } = parseCursor(cursor);
    const known = journalId === journal.id && place <= last && place >= trim.through();
    return known ? { place, lost: false } : { place: trim.through(), lost: true };
  };

  async function* read(
    { place, lost }: EventsPlace,
    filter: (event: NewEvent) => boolean,
    signal: AbortSignal,
    quietMs: number,
  ): AsyncGenerator<Event | undefined> {
    for (;;) {
      signal.throwIfAborted();
      // Trimmed under a slow reader.
      if (place < trim.through()) [place, lost] = [trim.through(), true];
      if (lost) yield { type: 'lost', cursor: formatCursor(place), atMs: clock.wallMs() };
      lost = false;
      const rows = place < last ? readAfter.all(place, READ_BATCH) : [];
      for (const row of rows) {
        place = row.sequence;
        const event = eventOf(row, formatCursor(place));
        if (event.type !== 'lost' && filter(event)) yield event;
      }
      if (rows.length === 0 && !(await followers.more(quietMs, signal))) yield undefined;
      // Others have their turn, however many events are of no interest to this one.
      if (rows.length === READ_BATCH) await setImmediate();
    }
  }

  return {
    append(event) {
      next = Math.max(next, last) + 1;
      const sequence = next;
      journal.transaction(() => {
        insert.run(sequence, clock.wallMs(), JSON.stringify(event));
        journal.afterCommit(trim.count);
        journal.afterCommit(wake);
      });
    },
    cursor: () => formatCursor(last),
    follow: ({ cursor, signal, filter = () => true, quietMs }) =>
      read(placeOf(cursor), filter, AbortSignal.any([signal, ended.signal]), quietMs),
    close() {
      ended.abort(new DsecError('unavailable', 'the edge is closing'));
    },
  };
}

const eventOf = ({ at_ms, body }: EventRow, cursor: string) =>
  ({ cursor, atMs: at_ms, ...JSON.parse(body) }) as Event;

function parseCursor(cursor: string): { readonly journalId: string; readonly place: number } {
  const [, journalId, text = ''] = CURSOR.exec(cursor) ?? [];
  if (journalId !== undefined) return { journalId, place: Number.parseInt(text, 36) };
  throw new DsecError('invalid-argument', 'this is no cursor of events');
}

function createFollowers() {
  const wakers = new Set<() => void>();
  return {
    wake() {
      for (const waker of wakers) waker();
      wakers.clear();
    },
    /** Resolves when there may be more, or with false after `ms`. */
    more: (ms: number, signal: AbortSignal): Promise<boolean> =>
      new Promise((resolve) => {
        const done = (woken: boolean) => {
          wakers.delete(onWake);
          signal.removeEventListener('abort', onWake);
          clearTimeout(timer);
          resolve(woken);
        };
        const onWake = () => done(true);
        const timer = setTimeout(() => done(false), ms);
        signal.addEventListener('abort', onWake, { once: true });
        wakers.add(onWake);
      }),
  };
}

/** Keeps the number of events within bounds, some at a time. */
function createTrimmer({ db, transaction }: Journal, keptMax: number) {
  let kept = db.prepare<[], number>('SELECT count(*) FROM events').pluck().get() ?? 0;
  let through = db
    .prepare<[], number>('SELECT trimmed_through FROM event_horizon')
    .pluck()
    .get() as number;
  const drop = db
    .prepare<[number], number>(
      `DELETE FROM events WHERE sequence IN (SELECT sequence FROM events ORDER BY sequence LIMIT ?)
       RETURNING sequence`,
    )
    .pluck();
  const save = db.prepare('UPDATE event_horizon SET trimmed_through = ?');
  const dropOldest = () =>
    transaction(() => {
      const dropped = drop.all(kept - keptMax);
      save.run(Math.max(through, ...dropped));
      return dropped;
    });
  return {
    through: () => through,
    /** One more is there. */
    count() {
      kept += 1;
      if (kept <= keptMax + TRIM_STEP) return;
      try {
        const dropped = dropOldest();
        kept -= dropped.length;
        through = Math.max(through, ...dropped);
      } catch {
        // A full disk, say: the next event tries again, and finds as many more.
      }
    },
  };
}
