import { DsecError } from '@dsec/std';

/** Items of a page that names no limit. */
export const LIMIT_DEFAULT = 100;

/** A cursor that holds the name of the last item of a page. */
export function formatCursor(name: string): string {
  return Buffer.from(name).toString('base64url');
}

/** Throws `invalid-argument` for what is none of a list whose names have the form `grammar`. */
export function parseCursor(cursor: string, grammar: RegExp): string {
  const name = Buffer.from(cursor, 'base64url').toString('latin1');
  if (grammar.test(name)) return name;
  throw new DsecError('invalid-argument', 'cursor: is none of this list', {
    details: { field: 'cursor' },
  });
}

/** A part of a key in the store: a name may end in a dot, a part may not, and `=` is in no name. */
export function keyPart(name: string): string {
  return name.replace(/\.$/, '=');
}

export function nameOfKeyPart(part: string): string {
  return part.replace(/=$/, '.');
}

/** Runs `work` on each item, at most `atOnce` at a time, and keeps the order of the results. */
export async function mapBounded<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = new Array(items.length);
  let next = 0;
  const run = async () => {
    for (let index = next++; index < items.length; index = next++) {
      results[index] = await work(items[index] as T);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, run));
  return results;
}
