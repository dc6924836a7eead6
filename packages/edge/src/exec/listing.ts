import { DsecError } from '@dsec/std';

export interface PageQuery {
  readonly limit?: number;
  readonly cursor?: string;
}

export const PAGE_LIMIT_DEFAULT = 100;

/** Listings are in the order of sequence numbers; a cursor is the last one that was shown. */
export function sequenceOfCursor(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  const [, sequence] = /^s(\d{1,15})$/.exec(cursor) ?? [];
  if (sequence !== undefined) return Number(sequence);
  throw new DsecError('invalid-argument', 'the cursor is not of this listing');
}

/** Of the last one shown, where more follow. */
export function cursorOf(last: { readonly sequence: number } | undefined): { cursor?: string } {
  return last === undefined ? {} : { cursor: `s${last.sequence}` };
}
