import type { Event, QueryOf, RouteOf } from '@dsec/protocol';
import { SECOND_MS } from '@dsec/std';
import type { EventAnswer } from '@dsec/transport';
import type { EventLog } from '../journal/event-log.ts';
import type { Caller } from '../operation.ts';

/** A caller that hears nothing for longer knows that the connection is dead. */
const QUIET_MS = 15 * SECOND_MS;

export interface EventStreamRequest {
  readonly query: QueryOf<RouteOf<'streamEvents'>>;
  /** The header Last-Event-ID, by which browsers go on. */
  readonly lastEventId: string | string[] | undefined;
  readonly caller: Caller;
  /** Sees the events of every project. */
  readonly isPlatform: boolean;
  readonly signal: AbortSignal;
  readonly quietMs?: number;
}

/**
 * Events of the caller's project from a cursor on. They are read from the log as they are taken, so a slow
 * caller holds nothing but its place: one that takes nothing is cut off by the server and goes on from the
 * last cursor it has; what is no longer kept by then is told as `lost`. Ends when the server closes.
 */
export async function* streamEvents(
  log: Pick<EventLog, 'follow'>,
  request: EventStreamRequest,
): AsyncGenerator<EventAnswer<Event> | undefined> {
  const { query, lastEventId, caller, isPlatform, signal, quietMs = QUIET_MS } = request;
  const { sandbox, job, type } = query;
  const cursor = query.cursor ?? (typeof lastEventId === 'string' ? lastEventId : undefined);
  const events = log.follow({
    ...{ cursor, signal, quietMs },
    filter: (event) =>
      (isPlatform || event.project === caller.project) &&
      (sandbox === undefined || event.sandbox === sandbox) &&
      (job === undefined || event.job === job) &&
      (type === undefined || type.includes(event.type)),
  });
  try {
    // The place is taken: nothing that comes now is missed.
    yield undefined;
    for await (const event of events) {
      yield event === undefined ? undefined : { id: event.cursor, data: event };
    }
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
  }
}
