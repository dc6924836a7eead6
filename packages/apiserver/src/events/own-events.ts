/** A follower with connections of its own, for one whose place is older than what is kept here. */
import { setMaxListeners } from 'node:events';
import type { Event, QueryOf, RouteOf } from '@dsec/protocol';
import { type Clock, createBoundedQueue, SECOND_MS } from '@dsec/std';
import type { EdgeLink } from '../fleet/edge-link.ts';
import type { TicketHolder } from '../fleet/ticket-signer.ts';
import { readEdgeEvents } from './edge-events.ts';
import type { EventPlace } from './event-cursor.ts';

export interface PlacedEvent {
  readonly event: Event;
  /** After this event. */
  readonly place: EventPlace;
}

/** Events that wait for a reader; then the edges do. */
const WAITING_MAX = 64;
const LISTENERS_MORE = 10;
const AGAIN_MS_MAX = 2 * SECOND_MS;

/**
 * Events of the holder's project from a place on, an edge's in its order; from now on for an edge that has no
 * place. `undefined` after `quietMs` without one. Ends with the signal.
 */
export async function* followOwn(
  links: readonly EdgeLink[],
  query: Omit<QueryOf<RouteOf<'streamEvents'>>, 'cursor'>,
  from: EventPlace,
  options: {
    readonly holder: TicketHolder;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly quietMs: number;
  },
): AsyncGenerator<PlacedEvent | undefined> {
  const { holder, clock, quietMs } = options;
  const ended = new AbortController();
  const signal = AbortSignal.any([options.signal, ended.signal]);
  // One edge waits for its connection, for room or for its next attempt, and we for events.
  setMaxListeners(2 * links.length + LISTENERS_MORE, signal);
  const queue = createBoundedQueue<readonly [string, Event] | undefined>('events', WAITING_MAX);
  const place = new Map(from);
  const pumps = links.map((link) =>
    pump(link, query, from.get(link.edgeId), { holder, clock, signal }, (item) =>
      queue.pushWhenRoom(item, signal),
    ),
  );
  const quiet = setInterval(() => {
    if (queue.depth === 0) queue.push(undefined);
  }, quietMs);
  try {
    while (!signal.aborted) {
      const item = await queue.shift(signal);
      if (item === undefined) {
        yield undefined;
        continue;
      }
      const [edge, event] = item;
      place.set(edge, event.cursor);
      yield { event, place: new Map(place) };
    }
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
  } finally {
    clearInterval(quiet);
    ended.abort();
    await Promise.all(pumps);
  }
}

async function pump(
  link: EdgeLink,
  query: Omit<QueryOf<RouteOf<'streamEvents'>>, 'cursor'>,
  from: string | undefined,
  {
    holder,
    clock,
    signal,
  }: { readonly holder: TicketHolder; readonly clock: Clock; readonly signal: AbortSignal },
  give: (item: readonly [string, Event]) => Promise<void>,
): Promise<void> {
  let cursor = from;
  for (let waitMs = 50; !signal.aborted; waitMs = Math.min(AGAIN_MS_MAX, waitMs * 2)) {
    try {
      const wanted = cursor === undefined ? query : { ...query, cursor };
      for await (const item of readEdgeEvents(link, wanted, holder, signal)) {
        waitMs = 50;
        if (item === 'connected') continue;
        await give([link.edgeId, item]);
        cursor = item.cursor;
      }
    } catch {
      // Lost, or ended by the signal: on from the last one.
    }
    await clock.sleep(waitMs, signal).catch(() => undefined);
  }
}
