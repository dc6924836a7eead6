import { DsecError } from '@dsec/std';
import { bitsOf, formatPrefix, type Prefix, parsePrefix } from '../rules/address.ts';
import type { CompiledNetwork, NameRule, PortRange } from '../rules/compiled.ts';
import { entryOf, type RuleSet, rangesOf } from './entries.ts';
import type { RuleEntry } from './layout.ts';

/** An address that a dedicated name had in an answer. */
export interface DnsAddress {
  readonly address: string;
  /** Of the rule that lets the name through, as it stands there. */
  readonly pattern: string;
  /** Inclusive; empty: all. */
  readonly ports: readonly PortRange[];
  /** Of the monotonic clock (`Clock.monotonicMs`). */
  readonly expiresMs: number;
}

interface Grant {
  readonly ports: readonly PortRange[];
  readonly expiresNs: bigint;
}

/** No rule has such patterns. */
const FOUND = 'found ';

/**
 * What name servers opened for one sandbox, by address and by the pattern that let the name through, so
 * that several names at one address do not end each other's time.
 */
export interface Grants {
  readonly size: number;
  has(address: string): boolean;
  /** Notes an answer, for the longer of two times, and gives the entry of its address. */
  add(address: DnsAddress, rules: RuleSet): RuleEntry;
  /** Takes over what an earlier process granted, until the rules change: its name is forgotten. */
  restore(entry: RuleEntry): void;
  /** Forgets the address whose time was over first, if any is, and gives its prefix. */
  dropExpired(nowNs: bigint): Prefix | undefined;
  /** Keeps what dedicated names of new rules still open. */
  keepNamed(network: CompiledNetwork): void;
  /** One entry for each address. Those that hold too many ranges of ports are forgotten. */
  entries(rules: RuleSet): RuleEntry[];
}

/** An address, and until when which pattern opens it. */
interface Place {
  readonly prefix: Prefix;
  readonly byPattern: Map<string, Grant>;
}

export function createGrants(): Grants {
  const places = new Map<string, Place>();

  function add(answer: DnsAddress, rules: RuleSet): RuleEntry {
    const prefix = hostPrefix(answer.address);
    const key = formatPrefix(prefix);
    const before = places.get(key)?.byPattern;
    const expiresNs = nanoseconds(answer.expiresMs);
    const known = before?.get(answer.pattern)?.expiresNs ?? 0n;
    const grant = { ports: answer.ports, expiresNs: known > expiresNs ? known : expiresNs };
    const place = { prefix, byPattern: new Map(before).set(answer.pattern, grant) };
    const entry = entryAt(place, rules);
    places.set(key, place);
    return entry;
  }

  function restore({ prefix, ranges }: RuleEntry): void {
    const granted = ranges.filter(({ expiresNs }) => expiresNs !== 0n);
    if (granted.length === 0 || prefix.length !== bitsOf(prefix.family)) return;
    const grants = granted.map(({ first, last, expiresNs }, index): [string, Grant] => [
      `${FOUND}${index}`,
      { ports: [[first, last]], expiresNs },
    ]);
    places.set(formatPrefix(prefix), { prefix, byPattern: new Map(grants) });
  }

  function dropExpired(nowNs: bigint): Prefix | undefined {
    const first = [...places]
      .map(([key, place]) => ({ key, prefix: place.prefix, endsNs: endOf(place) }))
      .filter(({ endsNs }) => endsNs <= nowNs)
      .reduce<{ key: string; prefix: Prefix; endsNs: bigint } | undefined>(
        (best, next) => (best === undefined || next.endsNs < best.endsNs ? next : best),
        undefined,
      );
    if (first !== undefined) places.delete(first.key);
    return first?.prefix;
  }

  function entries(rules: RuleSet): RuleEntry[] {
    return [...places].flatMap(([key, place]) => {
      try {
        return [entryAt(place, rules)];
      } catch {
        places.delete(key);
        return [];
      }
    });
  }
  return {
    get size() {
      return places.size;
    },
    has: (address) => places.has(formatPrefix(hostPrefix(address))),
    add,
    restore,
    dropExpired,
    keepNamed: (network) => keepNamed(places, network),
    entries,
  };
}

function entryAt({ prefix, byPattern }: Place, rules: RuleSet): RuleEntry {
  const granted = [...byPattern.values()].flatMap(({ ports, expiresNs }) =>
    rangesOf(ports, undefined, expiresNs),
  );
  return entryOf(prefix, [...rules.rangesAt(prefix), ...granted]);
}

function endOf({ byPattern }: Place): bigint {
  return [...byPattern.values()].reduce(
    (last, { expiresNs }) => (expiresNs > last ? expiresNs : last),
    0n,
  );
}

function keepNamed(places: Map<string, Place>, network: CompiledNetwork): void {
  const dedicated = new Map<string, NameRule>();
  for (const rule of network.names) if (rule.isDedicated) dedicated.set(rule.pattern, rule);
  for (const [key, { byPattern }] of places) {
    for (const [pattern, grant] of byPattern) {
      const rule = dedicated.get(pattern);
      if (rule === undefined) byPattern.delete(pattern);
      else byPattern.set(pattern, { ...grant, ports: rule.ports });
    }
    if (byPattern.size === 0) places.delete(key);
  }
}

function hostPrefix(address: string): Prefix {
  const prefix = parsePrefix(address, 'address');
  if (prefix.length === bitsOf(prefix.family)) return prefix;
  throw new DsecError('invalid-argument', `${address} is a range, not an address`);
}

/** Never 0, which would mean that it does not expire. */
function nanoseconds(ms: number): bigint {
  if (!Number.isFinite(ms))
    throw new DsecError('invalid-argument', `${ms} is no time to expire at`);
  return BigInt(Math.max(1, Math.ceil(ms))) * 1_000_000n;
}
