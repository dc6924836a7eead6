import { DsecError } from '@dsec/std';
import {
  type KeyWriteOptions,
  NAME_LENGTH_MAX,
  PAGE_ITEMS_MAX,
  type QueueLimits,
  TTL_MS_MIN,
  VALUE_BYTES_MAX,
} from './store.ts';

/**
 * Checks of arguments that every driver makes in the same way. Each throws `invalid-argument` or
 * `too-large`.
 */

const PART = '[A-Za-z0-9_=-]+(?:\\.[A-Za-z0-9_=-]+)*';
const NAME = new RegExp(`^${PART}(?:/${PART})*$`);

export function checkName(name: string, what: 'key' | 'log' | 'queue'): void {
  if (name.length > NAME_LENGTH_MAX || !NAME.test(name)) {
    throw new DsecError(
      'invalid-argument',
      `a ${what} is parts joined by "/", each of letters, digits, "_", "=", "-" and inner dots, ` +
        `${NAME_LENGTH_MAX} characters at most`,
    );
  }
}

export function checkPrefix(prefix: string): void {
  if (prefix === '') return;
  if (!prefix.endsWith('/')) {
    throw new DsecError('invalid-argument', 'a prefix is empty or ends with "/"');
  }
  checkName(prefix.slice(0, -1), 'key');
}

/** Position of a listing: `after` must lie below the prefix that is listed. */
export function checkAfter(after: string | undefined, prefix: string): void {
  if (after === undefined) return;
  checkName(after, 'key');
  if (!after.startsWith(prefix)) {
    throw new DsecError('invalid-argument', '"after" must be a key below the listed prefix');
  }
}

export function checkValue(value: Uint8Array): void {
  if (!(value instanceof Uint8Array)) {
    throw new DsecError('invalid-argument', 'a value is bytes');
  }
  if (value.byteLength > VALUE_BYTES_MAX) {
    throw new DsecError(
      'too-large',
      `a value holds at most ${VALUE_BYTES_MAX} bytes, this one ${value.byteLength}`,
    );
  }
}

export function checkKeyWrite(
  key: string,
  value: Uint8Array,
  options: KeyWriteOptions | undefined,
): void {
  checkName(key, 'key');
  checkValue(value);
  if (options?.ttlMs === undefined) return;
  checkInteger('ttlMs', options.ttlMs, TTL_MS_MIN, Number.MAX_SAFE_INTEGER);
}

/** A revision or a sequence; 0 stands for "before the first". */
export function checkPosition(what: string, value: number): void {
  checkInteger(what, value, 0, Number.MAX_SAFE_INTEGER);
}

/** Items of a page or batch: what the caller asked for, or all that a page may hold. */
export function pageLimit(limit: number | undefined): number {
  if (limit === undefined) return PAGE_ITEMS_MAX;
  checkInteger('limit', limit, 1, PAGE_ITEMS_MAX);
  return limit;
}

export function checkWait(what: string, waitMs: number | undefined): void {
  if (waitMs !== undefined) checkInteger(what, waitMs, 0, Number.MAX_SAFE_INTEGER);
}

export function checkQueueLimits(limits: QueueLimits): void {
  checkInteger('leaseMs', limits.leaseMs, 1, Number.MAX_SAFE_INTEGER);
  checkInteger('deliveriesMax', limits.deliveriesMax, 1, Number.MAX_SAFE_INTEGER);
  checkInteger('depthMax', limits.depthMax, 1, Number.MAX_SAFE_INTEGER);
  checkInteger('deadMax', limits.deadMax, 1, Number.MAX_SAFE_INTEGER);
}

function checkInteger(what: string, value: number, min: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw new DsecError('invalid-argument', `${what} must be an integer from ${min} to ${max}`);
}
