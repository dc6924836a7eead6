import { type Event, ROUTES } from '@dsec/protocol';
import { SECOND_MS } from '@dsec/std';
import { clientErrorOf, UnavailableError } from './errors.ts';
import { present } from './pages.ts';
import { createPatience } from './patience.ts';
import type { Server } from './server.ts';

export interface EventOptions {
  /** Go on after it; absent: from now on. */
  readonly cursor?: string | undefined;
  readonly sandbox?: string | undefined;
  readonly job?: string | undefined;
  readonly types?: readonly Event['type'][] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A server says something every 15 seconds. */
const SILENCE_MS = 45 * SECOND_MS;

/** What happens, without end. A lost connection is made anew after the last event that was taken. */
export async function* followEvents(server: Server, options: EventOptions): AsyncGenerator<Event> {
  const { sandbox, job, types, signal } = options;
  const filter = present({ sandbox, job, type: types && [...types] });
  const patience = createPatience(server.timeoutMs);
  let { cursor } = options;
  for (;;) {
    try {
      const query = { ...filter, ...present({ cursor }) };
      const settings = { signal, silenceMs: SILENCE_MS };
      const events = await server.call(ROUTES.streamEvents, { query }, settings);
      patience.opened();
      for await (const { data } of events) {
        cursor = data.cursor;
        yield data;
        patience.progressed();
      }
      throw new UnavailableError('unavailable', 'the server ended the events');
    } catch (thrown) {
      await patience.pause(clientErrorOf(thrown), signal);
    }
  }
}
