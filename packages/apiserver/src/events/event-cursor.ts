import { DsecError } from '@dsec/std';

/** A place in the stream of every edge: which of its events come next. */
export type EventPlace = ReadonlyMap<string, string>;

const PART = /^([a-z0-9]{1,11})=([A-Za-z0-9_-]{1,512})$/;

/** The cursor of an apiserver: the cursors of its edges, by edge. */
export function formatEventCursor(place: EventPlace): string {
  const parts = [...place].map(([edge, cursor]) => `${edge}=${cursor}`);
  return Buffer.from(parts.sort().join(',')).toString('base64url');
}

/** Throws `invalid-argument`. */
export function parseEventCursor(cursor: string): EventPlace {
  const place = new Map<string, string>();
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  for (const part of text.split(',')) {
    const [, edge, of] = PART.exec(part) ?? [];
    if (edge === undefined || of === undefined) {
      throw new DsecError('invalid-argument', 'cursor: is none of a stream of events', {
        details: { field: 'cursor' },
      });
    }
    place.set(edge, of);
  }
  return place;
}
