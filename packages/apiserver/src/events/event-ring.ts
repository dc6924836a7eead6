/**
 * The newest events of the whole fleet, in the order in which they came here, for all who follow: a reader
 * has a place and nothing else. One that waits is looked at once for each event, and woken by one that it
 * wants.
 */
import type { Event } from '@dsec/protocol';
import { type EventPlace, formatEventCursor } from './event-cursor.ts';
import { createEventWaiters, type EventFilter, type Waited } from './event-waiters.ts';

interface RingEntry {
  readonly event: Event;
  /** After this event. */
  readonly place: EventPlace;
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
  /** From now on; see `EventWaiters`. */
  wait(filter: EventFilter, signal: AbortSignal, quietMs: number): Promise<Waited>;
  /** Ends every wait. */
  close(): void;
}

export function createEventRing(capacity: number): EventRing {
  const entries: RingEntry[] = [];
  let end = 0;
  let place: EventPlace = new Map();
  /** Cursors that were told, both ways. */
  const cursors = new Map<number, string>();
  const known = new Map<string, number>();
  const waiters = createEventWaiters(() => end);

  const start = () => Math.max(0, end - capacity);

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
      waiters.offer(event, end - 1);
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
    wait: waiters.wait,
    close: waiters.close,
  };
}
