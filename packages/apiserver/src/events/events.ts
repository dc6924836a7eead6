/** The event stream of an apiserver. */
import type { Identity } from '@dsec/iam';
import type { Event, QueryOf, RouteOf } from '@dsec/protocol';
import { type Clock, DsecError, SECOND_MS } from '@dsec/std';
import type { EventAnswer } from '@dsec/transport';
import type { Fleet } from '../fleet/fleet.ts';
import { formatEventCursor, parseEventCursor } from './event-cursor.ts';
import { type EventFeed, type EventFeedOptions, openEventFeed } from './event-feed.ts';
import type { EventRing } from './event-ring.ts';
import type { EventFilter } from './event-waiters.ts';
import { followOwn } from './own-events.ts';

export interface FollowRequest {
  readonly query: QueryOf<RouteOf<'streamEvents'>>;
  /** The header Last-Event-ID, by which browsers go on. */
  readonly lastEventId: string | string[] | undefined;
  readonly identity: Identity;
  readonly signal: AbortSignal;
}

export interface Events {
  /**
   * Events of the caller's project from a cursor on, or from now on; those of one edge in their order. A
   * reader that does not take them is told what it has lost. Begins with `undefined` when the caller has
   * its place; ends with the signal.
   */
  follow(request: FollowRequest): AsyncGenerator<EventAnswer<Event> | undefined>;
  /** Who follows. */
  readonly followers: number;
  close(): void;
}

export interface EventsOptions extends EventFeedOptions {
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly quietMs?: number;
}

/** A caller that hears nothing for longer knows that the connection is dead. */
const QUIET_MS = 15 * SECOND_MS;
/** How long events are still read after the last follower has gone. */
const LINGER_MS = 30 * SECOND_MS;
/** Followers with connections of their own. */
const OWN_MAX = 256;

export function createEvents(options: EventsOptions): Events {
  const { fleet, clock, quietMs = QUIET_MS } = options;
  let feed: EventFeed | undefined;
  let linger: NodeJS.Timeout | undefined;
  const followAlone = createLoneFollowing({ fleet, clock, quietMs });
  let followers = 0;

  const enter = (): EventFeed => {
    clearTimeout(linger);
    followers += 1;
    feed ??= openEventFeed(options);
    return feed;
  };
  const leave = () => {
    followers -= 1;
    if (followers > 0) return;
    linger = setTimeout(() => {
      feed?.close();
      feed = undefined;
    }, LINGER_MS).unref();
  };

  return {
    async *follow(request) {
      const { query, lastEventId, signal } = request;
      const cursor = query.cursor ?? (typeof lastEventId === 'string' ? lastEventId : undefined);
      if (cursor !== undefined) parseEventCursor(cursor);
      const { ring, ready } = enter();
      try {
        // From now on means from this moment on, if the ring is filled already.
        const now = ring.end;
        await ready;
        const from = cursor === undefined ? now : ring.find(cursor);
        yield undefined;
        if (from !== undefined)
          yield* followRing(ring, from, filterOf(request), { signal, quietMs });
        else yield* followAlone(request, String(cursor));
      } finally {
        leave();
      }
    },
    get followers() {
      return followers;
    },
    close() {
      clearTimeout(linger);
      feed?.close();
    },
  };
}

/** For a place that the ring does not know any more. */
function createLoneFollowing({
  fleet,
  clock,
  quietMs,
}: {
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly quietMs: number;
}) {
  let count = 0;
  return async function* followAlone(
    { query, identity: holder, signal }: FollowRequest,
    cursor: string,
  ): AsyncGenerator<EventAnswer<Event> | undefined> {
    if (count >= OWN_MAX) {
      throw new DsecError('overloaded', `${OWN_MAX} followers read what is older already`);
    }
    const { cursor: _cursor, ...filters } = query;
    const links = query.sandbox === undefined ? fleet.links : [fleet.linkOf(query.sandbox)];
    const from = parseEventCursor(cursor);
    const options = { holder, clock, signal, quietMs };
    count += 1;
    try {
      for await (const placed of followOwn(links, filters, from, options)) {
        yield placed && answerOf(placed.event, formatEventCursor(placed.place));
      }
    } finally {
      count -= 1;
    }
  };
}

async function* followRing(
  ring: EventRing,
  from: number,
  filter: EventFilter,
  { signal, quietMs }: { readonly signal: AbortSignal; readonly quietMs: number },
): AsyncGenerator<EventAnswer<Event> | undefined> {
  let next = from;
  while (!signal.aborted) {
    if (next < ring.start) {
      // Too slow: told, and on with what there is.
      next = ring.start + 1;
      const { atMs } = ring.at(next - 1);
      const cursor = ring.cursorAt(next - 1);
      yield answerOf({ type: 'lost', cursor, atMs }, cursor);
      continue;
    }
    if (next < ring.end) {
      const event = ring.at(next);
      next += 1;
      if (filter.wants(event)) yield answerOf(event, ring.cursorAt(next - 1));
      continue;
    }
    const waited = await ring.wait(filter, signal, quietMs);
    next = waited.next;
    if (waited.isQuiet && !signal.aborted) yield undefined;
  }
}

function answerOf(event: Event, cursor: string): EventAnswer<Event> {
  return { id: cursor, data: { ...event, cursor } };
}

function filterOf({ query: { sandbox, job, type }, identity }: FollowRequest): EventFilter {
  const { project } = identity;
  return {
    project,
    wants: (event) =>
      event.type === 'lost' ||
      (event.project === project &&
        (sandbox === undefined || event.sandbox === sandbox) &&
        (job === undefined || event.job === job) &&
        (type === undefined || type.includes(event.type))),
  };
}
