/**
 * The newest events of the whole fleet, in the order in which they came here, for all who follow: a reader
 * has a place and nothing else. One that waits is looked at once for each event, and woken by one that it
 * wants.
 */
import type { Event } from '@dsec/protocol';
import { type EventPlace, formatEventCursor } from './event-cursor.ts';

interface RingEntry {
  readonly event: Event;
  /** After this event. */
  readonly place: EventPlace;
}

export interface EventFilter {
  /** Only events of it; absent: of all. */
  readonly project: string;
  readonly wants: (event: Event) => boolean;
}

export interface EventRing {
  /** Of the oldest event that is kept; the same as `end` when there is none. */
  readonly start: number;
  /** Of the next event. */
  readonly end: number;
  append(edge: string, event: Event): void;
  /** Where an edge stands without an event. */
  setPlace(edge: string, cursor: string): void;
  at(index: number): Event;
  /** After the event of an index that is kept. */
  cursorAt(index: number): string;
  /** At the end. */
  readonly place: EventPlace;
  /** The index after the event with this cursor, if somebody was told that and it is kept. */
  find(cursor: string): number | undefined;
  /**
   * Waits for the next event from now on that is wanted, until `quietMs` are over or the signal aborts.
   * `next` is where to read on: that event, or behind all that were not wanted.
   */
  wait(
    filter: EventFilter,
    signal: AbortSignal,
    quietMs: number,
  ): Promise<{ readonly next: number; readonly isQuiet: boolean }>;
  /** Ends every wait. */
  close(): void;
}

interface Waiter {
  readonly filter: EventFilter;
  readonly untilTick: number;
  /** With the index of its event, or `undefined` when there was none. */
  settle(index: number | undefined): void;
}

const TICK_MS = 500;

export function createEventRing(capacity: number): EventRing {
  const entries: RingEntry[] = [];
  let end = 0;
  let place: EventPlace = new Map();
  /** By project; an event without one is everybody's. */
  const waiters = new Map<string, Set<Waiter>>();
  /** Cursors that were told, both ways. */
  const cursors = new Map<number, string>();
  const known = new Map<string, number>();
  let tick = 0;
  let timer: NodeJS.Timeout | undefined;

  const start = () => Math.max(0, end - capacity);
  const offer = (event: Event, index: number, set: Iterable<Waiter>) => {
    for (const waiter of [...set]) if (waiter.filter.wants(event)) waiter.settle(index);
  };
  const onTick = () => {
    tick += 1;
    for (const set of waiters.values()) {
      for (const waiter of [...set]) if (waiter.untilTick <= tick) waiter.settle(undefined);
    }
    if (waiters.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    get start() {
      return start();
    },
    get end() {
      return end;
    },
    get place() {
      return place;
    },
    append(edge, event) {
      place = new Map(place).set(edge, event.cursor);
      known.delete(cursors.get(end - capacity) ?? '');
      cursors.delete(end - capacity);
      entries[end % capacity] = { event, place };
      end += 1;
      if (event.type === 'lost') {
        for (const set of waiters.values()) offer(event, end - 1, set);
      } else offer(event, end - 1, waiters.get(event.project) ?? []);
    },
    setPlace(edge, cursor) {
      place = new Map(place).set(edge, cursor);
    },
    at: (index) => (entries[index % capacity] as RingEntry).event,
    cursorAt(index) {
      const { place: after } = entries[index % capacity] as RingEntry;
      const cursor = cursors.get(index) ?? formatEventCursor(after);
      cursors.set(index, cursor);
      known.set(cursor, index);
      return cursor;
    },
    find(cursor) {
      const index = known.get(cursor);
      if (index !== undefined) return index + 1;
      return cursor === formatEventCursor(place) ? end : undefined;
    },
    wait: (filter, signal, quietMs) =>
      new Promise((resolve) => {
        const set = waiters.get(filter.project) ?? new Set<Waiter>();
        waiters.set(filter.project, set);
        const settle = (index: number | undefined) => {
          set.delete(waiter);
          if (set.size === 0 && waiters.get(filter.project) === set) {
            waiters.delete(filter.project);
          }
          signal.removeEventListener('abort', onAbort);
          resolve({ next: index ?? end, isQuiet: index === undefined });
        };
        const onAbort = () => settle(undefined);
        const untilTick = tick + Math.max(1, Math.round(quietMs / TICK_MS));
        const waiter: Waiter = { filter, settle, untilTick };
        set.add(waiter);
        timer ??= setInterval(onTick, TICK_MS).unref();
        signal.addEventListener('abort', onAbort, { once: true });
        if (signal.aborted) onAbort();
      }),
    close() {
      clearInterval(timer);
      for (const set of waiters.values()) for (const waiter of [...set]) waiter.settle(undefined);
    },
  };
}
