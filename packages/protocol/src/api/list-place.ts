import { DsecError } from '@dsec/std';

/**
 * A place in the order in which sandboxes are listed: by creation, then by id. It is the cursor of
 * `listSandboxes`, the same at an apiserver and at each of its edges, so that lists of several are merged by
 * looking at nothing but sandboxes.
 */
export interface ListPlace {
  readonly createdAtMs: number;
  readonly id: string;
}

const PLACE = /^(\d{1,16})\.(sb-[a-z0-9]{1,8}-[a-z0-9]{1,11}-[a-z0-9]{16})$/;

export function formatListPlace({ createdAtMs, id }: ListPlace): string {
  return Buffer.from(`${Math.floor(createdAtMs)}.${id}`).toString('base64url');
}

/** Throws `invalid-argument`. */
export function parseListPlace(cursor: string): ListPlace {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  const [, createdAtMs, id] = PLACE.exec(text) ?? [];
  if (createdAtMs === undefined || id === undefined) {
    throw new DsecError('invalid-argument', 'cursor: is none of a list of sandboxes', {
      details: { field: 'cursor' },
    });
  }
  return { createdAtMs: Number(createdAtMs), id };
}

/** Negative where `a` comes first. */
export function compareListPlaces(a: ListPlace, b: ListPlace): number {
  const byTime = a.createdAtMs - b.createdAtMs;
  if (byTime !== 0) return byTime;
  return a.id < b.id ? -1 : Number(a.id > b.id);
}
