import { isIPv4, isIPv6 } from 'node:net';
import { DsecError } from '@dsec/std';

/** An address as a number. */
export interface Address {
  readonly family: 4 | 6;
  readonly value: bigint;
}

/** All addresses that begin with the first `length` bits of `value`, the rest of which is zero. */
export interface Prefix extends Address {
  readonly length: number;
}

export const bitsOf = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/** Reads an address without a zone. `undefined` where the text is none. */
export function parseAddress(text: string): Address | undefined {
  if (text.length > 45 || text.includes('%')) return undefined;
  if (isIPv4(text)) return { family: 4, value: valueOfV4(text) };
  if (isIPv6(text)) return { family: 6, value: valueOfV6(text) };
  return undefined;
}

const valueOfV4 = (text: string) =>
  text.split('.').reduce((value, part) => (value << 8n) | BigInt(part), 0n);

function valueOfV6(text: string): bigint {
  const [head = '', tail] = text.split('::');
  const before = groupsOf(head);
  const after = groupsOf(tail ?? '');
  const zeros = new Array<bigint>(8 - before.length - after.length).fill(0n);
  return [...before, ...zeros, ...after].reduce((value, group) => (value << 16n) | group, 0n);
}

function groupsOf(text: string): bigint[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [BigInt(`0x${group}`)];
    const value = valueOfV4(group);
    return [value >> 16n, value & 0xffffn];
  });
}

/** An address or a range in CIDR form. Throws `invalid-argument`, also where bits stand behind the range. */
export function parsePrefix(text: string, field: string): Prefix {
  const fault = (why: string) =>
    new DsecError('invalid-argument', `${field}: ${JSON.stringify(text.slice(0, 64))} ${why}`, {
      details: { field },
    });
  const slash = text.indexOf('/');
  const address = parseAddress(slash < 0 ? text : text.slice(0, slash));
  if (address === undefined) throw fault('is no address and no range in CIDR form');
  const bits = bitsOf(address.family);
  const digits = slash < 0 ? String(bits) : text.slice(slash + 1);
  if (!/^(0|[1-9][0-9]{0,2})$/.test(digits) || Number(digits) > bits) {
    throw fault(`needs a length from 0 to ${bits} after its slash`);
  }
  const prefix = { ...address, length: Number(digits) };
  const base = firstOf(prefix);
  if (base !== address.value) {
    throw fault(`has bits behind its length; write ${formatPrefix({ ...prefix, value: base })}`);
  }
  return prefix;
}

function firstOf({ family, value, length }: Prefix): bigint {
  const rest = BigInt(bitsOf(family) - length);
  return (value >> rest) << rest;
}

/** The one way in which a range is written: without leading zeros, IPv6 with its longest gap closed. */
export function formatPrefix(prefix: Prefix): string {
  return `${formatAddress(prefix)}/${prefix.length}`;
}

export function formatAddress({ family, value }: Address): string {
  if (family === 4) {
    return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.');
  }
  const groups = Array.from({ length: 8 }, (_, i) => (value >> BigInt(112 - 16 * i)) & 0xffffn);
  const text = groups.map((group) => group.toString(16)).join(':');
  const gaps = text.match(/\b0(:0)+\b/g) ?? [];
  const longest = gaps.reduce((best, gap) => (gap.length > best.length ? gap : best), '');
  if (longest === '') return text;
  const at = text.search(new RegExp(`(^|:)${longest}(:|$)`));
  const start = text[at] === ':' ? at + 1 : at;
  return `${text.slice(0, start).replace(/:$/, '')}::${text.slice(start + longest.length).replace(/^:/, '')}`;
}

/** Whether every address of `inner` is in `outer`. */
export function contains(outer: Prefix, inner: Prefix): boolean {
  if (outer.family !== inner.family || outer.length > inner.length) return false;
  const rest = BigInt(bitsOf(outer.family) - outer.length);
  return outer.value >> rest === inner.value >> rest;
}

/** What remains of ranges without the holes: at most one range more for each bit of each hole. */
export function subtract(from: readonly Prefix[], holes: readonly Prefix[]): Prefix[] {
  return holes.reduce<Prefix[]>(
    (rest, hole) => rest.flatMap((prefix) => withoutHole(prefix, hole)),
    [...from],
  );
}

function withoutHole(prefix: Prefix, hole: Prefix): Prefix[] {
  if (contains(hole, prefix)) return [];
  if (!contains(prefix, hole)) return [prefix];
  const parts: Prefix[] = [];
  for (let length = prefix.length + 1; length <= hole.length; length += 1) {
    const bit = 1n << BigInt(bitsOf(hole.family) - length);
    const sibling = firstOf({ ...hole, length }) ^ bit;
    parts.push({ family: hole.family, value: sibling, length });
  }
  return parts;
}

/** The smaller one of two ranges of which one holds the other; `undefined` where they do not meet. */
export function intersect(a: Prefix, b: Prefix): Prefix | undefined {
  if (contains(a, b)) return b;
  return contains(b, a) ? a : undefined;
}

/** Ranges without those that another one of them holds, each once. */
export function withoutContained(prefixes: readonly Prefix[]): Prefix[] {
  const wide = [...prefixes].sort((a, b) => a.length - b.length);
  const kept: Prefix[] = [];
  for (const prefix of wide) {
    if (!kept.some((other) => contains(other, prefix))) kept.push(prefix);
  }
  return kept;
}
