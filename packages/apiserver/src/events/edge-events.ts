import { check, Event, formatTarget, type QueryOf, ROUTES, type RouteOf } from '@dsec/protocol';
import { asDsecError, DsecError, SECOND_MS } from '@dsec/std';
import { readEvents } from '@dsec/transport';
import { type EdgeLink, successOf } from '../fleet/edge-link.ts';
import type { TicketHolder } from '../fleet/ticket-signer.ts';

/** An edge says something at least every 15 s. */
const SILENCE_MS = 45 * SECOND_MS;

/**
 * Events of one edge, from one connection: ends with an error when that is lost, whatever the reason. The
 * first thing told is `connected`.
 */
export async function* readEdgeEvents(
  { sign, http }: EdgeLink,
  query: QueryOf<RouteOf<'streamEvents'>>,
  holder: TicketHolder,
  signal: AbortSignal,
): AsyncGenerator<'connected' | Event> {
  const route = ROUTES.streamEvents;
  const target = formatTarget(route, {}, query);
  const { method, operationClass } = route;
  const headers = sign({ operationClass, method, target, isStream: true }, holder);
  const reply = await successOf(await http.send({ method, target, headers, signal }));
  const body = reply.open();
  const silence = setTimeout(() => {
    body.destroy(new DsecError('unavailable', 'the edge says nothing any more'));
  }, SILENCE_MS);
  body.on('data', () => silence.refresh());
  body.pause();
  try {
    yield 'connected';
    for await (const { data } of readEvents(body)) {
      yield check(Event, JSON.parse(data), 'event');
    }
    throw new DsecError('unavailable', 'the edge ended its stream of events');
  } catch (thrown) {
    throw asDsecError(thrown);
  } finally {
    clearTimeout(silence);
    body.destroy();
  }
}
