/** Amounts as people type them. */
import { DAY_MS, DsecError, GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS } from '@dsec/std';

const DURATIONS = { ms: 1, s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS } as const;
const SIZES = { '': 1, k: KIB, m: MIB, g: GIB, t: 1024 * GIB } as const;

/** `90s`, `10m`, `1.5h`, `2d`, `500ms`; a bare number is seconds. Milliseconds, at least one. */
export function parseDurationMs(text: string, what: string): number {
  const [, number, unit = 's'] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)?$/.exec(text) ?? [];
  const ms = Math.round(Number(number) * DURATIONS[unit as keyof typeof DURATIONS]);
  if (number !== undefined && ms >= 1) return ms;
  throw new DsecError('invalid-argument', `${what} takes a time such as 90s, 10m, 1.5h or 2d`);
}

/** `512M`, `4GiB`, `1.5g`; a bare number is bytes. Units are powers of 1024. */
export function parseBytes(text: string, what: string): number {
  const found = /^(\d{1,15}(?:\.\d{1,3})?) ?(?:([kmgt])(?:i?b)?|b)?$/i.exec(text);
  const unit = (found?.[2] ?? '').toLowerCase() as keyof typeof SIZES;
  const bytes = Math.round(Number(found?.[1]) * SIZES[unit]);
  if (found !== null && Number.isSafeInteger(bytes)) return bytes;
  throw new DsecError('invalid-argument', `${what} takes a size such as 512M or 4GiB`);
}

/** A whole number within limits. */
export function parseCount(text: string, what: string, least: number, most: number): number {
  const count = Number(text);
  if (/^\d{1,15}$/.test(text) && count >= least && count <= most) return count;
  throw new DsecError('invalid-argument', `${what} takes a whole number from ${least} to ${most}`);
}

/** `NAME=value` pairs; a later one of the same name wins. */
export function parsePairs(pairs: readonly string[], what: string): Record<string, string> {
  const entries = pairs.map((pair): [string, string] => {
    const at = pair.indexOf('=');
    if (at < 1) throw new DsecError('invalid-argument', `${what} takes NAME=value, not ${pair}`);
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
  return Object.fromEntries(entries);
}
