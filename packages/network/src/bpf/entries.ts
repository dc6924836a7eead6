import { DsecError } from '@dsec/std';
import { bitsOf, formatPrefix, type Prefix, parsePrefix } from '../rules/address.ts';
import type { AddressRule, PortRange } from '../rules/compiled.ts';
import { PROTOCOLS, RANGES_MAX, type RuleEntry, type RuleRange } from './layout.ts';

/**
 * Rules become entries of a trie that knows only its longest match: each entry therefore also holds what
 * shorter prefixes around it open. Pure: addresses and ports in, entries out.
 */
export interface RuleSet {
  /** One entry for each prefix. */
  readonly entries: readonly RuleEntry[];
  /** What the rules open for a prefix, be it one of them or not. */
  rangesAt(prefix: Prefix): readonly RuleRange[];
}

const LAST_PORT = 65_535;

/**
 * Throws `invalid-argument` for a prefix that is none, for ports that are none, and for more than
 * `RANGES_MAX` separate ranges of ports on one prefix.
 */
export function compileRules(rules: readonly AddressRule[]): RuleSet {
  // By family, then by length, of which there are few, then by value.
  const byFamily: Record<4 | 6, Map<number, Map<bigint, RuleRange[]>>> = {
    4: new Map(),
    6: new Map(),
  };
  const prefixes: Prefix[] = [];
  for (const [index, rule] of rules.entries()) {
    const prefix = parsePrefix(rule.prefix, `addresses[${index}].prefix`);
    const byLength = byFamily[prefix.family];
    const values = byLength.get(prefix.length) ?? new Map<bigint, RuleRange[]>();
    byLength.set(prefix.length, values);
    const ranges = values.get(prefix.value);
    const own = rangesOf(rule.ports, rule.protocol, 0n);
    if (ranges === undefined) {
      values.set(prefix.value, [...own]);
      prefixes.push(prefix);
    } else {
      ranges.push(...own);
    }
  }

  function rangesAt(prefix: Prefix): RuleRange[] {
    const found: RuleRange[] = [];
    for (const [length, values] of byFamily[prefix.family]) {
      if (length > prefix.length) continue;
      const rest = BigInt(bitsOf(prefix.family) - length);
      found.push(...(values.get((prefix.value >> rest) << rest) ?? []));
    }
    return mergeRanges(found);
  }
  const entries = prefixes.map((prefix) => entryOf(prefix, rangesAt(prefix)));
  return { entries, rangesAt };
}

/** An entry with these ranges, joined where they meet. Throws as `compileRules`. */
export function entryOf(prefix: Prefix, ranges: readonly RuleRange[]): RuleEntry {
  const merged = mergeRanges(ranges);
  if (merged.length > RANGES_MAX) {
    const shown = formatPrefix(prefix);
    const why = `${shown}: ${merged.length} separate port ranges, at most ${RANGES_MAX} fit`;
    throw new DsecError('invalid-argument', why, { details: { prefix: shown } });
  }
  return { prefix, ranges: merged };
}

/** The ranges of a rule. No ports: all of them. */
export function rangesOf(
  ports: readonly PortRange[],
  protocol: 'tcp' | 'udp' | undefined,
  expiresNs: bigint,
): RuleRange[] {
  const number = protocol === undefined ? 0 : PROTOCOLS[protocol];
  const all: readonly PortRange[] = ports.length === 0 ? [[0, LAST_PORT]] : ports;
  return all.map(([first, last]) => {
    const isRange = [first, last].every((p) => Number.isInteger(p) && p >= 0 && p <= LAST_PORT);
    if (!isRange || first > last) {
      throw new DsecError('invalid-argument', `ports ${first} to ${last} are no range of ports`);
    }
    return { first, last, protocol: number, expiresNs };
  });
}

/**
 * The fewest ranges that open the same: those of one protocol and expiry are joined where they overlap or
 * touch, and what another range opens as long and for the same protocol is left out.
 */
export function mergeRanges(ranges: readonly RuleRange[]): RuleRange[] {
  const sorted = [...ranges].sort(
    (a, b) => a.protocol - b.protocol || compare(a.expiresNs, b.expiresNs) || a.first - b.first,
  );
  const joined: RuleRange[] = [];
  for (const range of sorted) {
    const last = joined.at(-1);
    const isAlike = last?.protocol === range.protocol && last.expiresNs === range.expiresNs;
    if (last !== undefined && isAlike && range.first <= last.last + 1) {
      joined[joined.length - 1] = { ...last, last: Math.max(last.last, range.last) };
    } else {
      joined.push(range);
    }
  }
  return joined.filter((range) => !joined.some((other) => other !== range && opens(other, range)));
}

/** Whether all that `inner` opens is open by `outer`. Two different joined ranges never open the same. */
function opens(outer: RuleRange, inner: RuleRange): boolean {
  const isLonger =
    outer.expiresNs === 0n || (inner.expiresNs !== 0n && outer.expiresNs >= inner.expiresNs);
  return (
    isLonger &&
    (outer.protocol === 0 || outer.protocol === inner.protocol) &&
    outer.first <= inner.first &&
    outer.last >= inner.last
  );
}

const compare = (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0);
