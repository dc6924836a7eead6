/** All events of the fleet in one ring, by one connection to each edge; while somebody follows. */
import { setMaxListeners } from 'node:events';
import { ROUTES } from '@dsec/protocol';
import { asDsecError, type Clock, type DsecError, SECOND_MS } from '@dsec/std';
import type { EdgeLink } from '../fleet/edge-link.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { TicketHolder } from '../fleet/ticket-signer.ts';
import { readEdgeEvents } from './edge-events.ts';
import { createEventRing, type EventRing } from './event-ring.ts';

export interface EventFeed {
  readonly ring: EventRing;
  /** Resolves when every edge has a place in the ring, or could not be reached for some seconds. */
  readonly ready: Promise<void>;
  close(): void;
}

export interface EventFeedOptions {
  readonly fleet: Fleet;
  /** Whose tickets see the events of all projects. */
  readonly holder: TicketHolder;
  readonly clock: Clock;
  readonly onLost: (edge: string, error: DsecError) => void;
}

/** Some megabytes; a reader that is further behind is told that it has lost something. */
const EVENTS_KEPT = 16_384;
const AGAIN_MS_MAX = 2 * SECOND_MS;
const LISTENERS_MORE = 10;
/** Longer than an edge that has just started refuses tickets. */
const FIRST_PATIENCE_MS = 3 * SECOND_MS;

export function openEventFeed(options: EventFeedOptions): EventFeed {
  const ring = createEventRing(EVENTS_KEPT);
  const closing = new AbortController();
  setMaxListeners(2 * options.fleet.links.length + LISTENERS_MORE, closing.signal);
  const readies = options.fleet.links.map(
    (link) =>
      new Promise<void>((resolve) => {
        void followEdge(link, ring, options, closing.signal, resolve).finally(resolve);
      }),
  );
  return {
    ring,
    ready: Promise.all(readies).then(() => undefined),
    close() {
      closing.abort();
      ring.close();
    },
  };
}

/** Goes on from the last event whenever the connection is lost. */
async function followEdge(
  link: EdgeLink,
  ring: EventRing,
  { holder, clock, onLost }: EventFeedOptions,
  signal: AbortSignal,
  onReady: () => void,
): Promise<void> {
  let cursor: string | undefined;
  let isLate = false;
  for (let waitMs = 50; !signal.aborted; waitMs = Math.min(AGAIN_MS_MAX, waitMs * 2)) {
    try {
      if (cursor === undefined) {
        cursor = await placeOf(link, holder, signal, isLate ? 0 : FIRST_PATIENCE_MS);
        // Followers are here already: what happened before is unknown to them.
        const lost = { type: 'lost', cursor, atMs: clock.wallMs() } as const;
        if (isLate) ring.append(link.edgeId, lost);
        else ring.setPlace(link.edgeId, cursor);
      }
      for await (const item of readEdgeEvents(link, { cursor }, holder, signal)) {
        onReady();
        waitMs = 50;
        if (item === 'connected') continue;
        cursor = item.cursor;
        ring.append(link.edgeId, item);
      }
    } catch (thrown) {
      if (signal.aborted) return;
      onLost(link.edgeId, asDsecError(thrown));
    }
    isLate = true;
    onReady();
    await clock.sleep(waitMs, signal).catch(() => undefined);
  }
}

async function placeOf(
  link: EdgeLink,
  holder: TicketHolder,
  signal: AbortSignal,
  patienceMs: number,
): Promise<string> {
  const query = { limit: 1 };
  const options = { holder, signal, patienceMs, deadlineMs: 5 * SECOND_MS };
  return (await link.call(ROUTES.getEdgeState, { query }, options)).events;
}
