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
  /** Takes over what an earlier process granted, until the rules change: nobody knows any more by which name. */
  restore(entry: RuleEntry): void;
  /** Forgets the address whose time was over first, if any is, and gives its prefix. */
  dropExpired(nowNs: bigint): Prefix | undefined;
  /** Keeps what dedicated names of new rules still open. */
  keepNamed(network: CompiledNetwork): void;
  /** One entry for each address. Those that hold too many ranges of ports are forgotten. */
  entries(rules: RuleSet): RuleEntry[];
}

export function createGrants(): Grants {
  const byAddress = new Map<string, { prefix: Prefix; byPattern: Map<string, Grant> }>();

  function entryAt(
    { prefix, byPattern }: { prefix: Prefix; byPattern: Map<string, Grant> },
    rules: RuleSet,
  ) {
    const granted = [...byPattern.values()].flatMap(({ ports, expiresNs }) =>
      rangesOf(ports, undefined, expiresNs),
    );
    return entryOf(prefix, [...rules.rangesAt(prefix), ...granted]);
  }

  function add(answer: DnsAddress, rules: RuleSet): RuleEntry {
    const prefix = hostPrefix(answer.address);
    const key = formatPrefix(prefix);
    const before = byAddress.get(key)?.byPattern;
    const expiresNs = nanoseconds(answer.expiresMs);
    const known = before?.get(answer.pattern)?.expiresNs ?? 0n;
    const grant = { ports: answer.ports, expiresNs: known > expiresNs ? known : expiresNs };
    const place = { prefix, byPattern: new Map(before).set(answer.pattern, grant) };
    const entry = entryAt(place, rules);
    byAddress.set(key, place);
    return entry;
  }

  function restore({ prefix, ranges }: RuleEntry): void {
    const granted = ranges.filter(({ expiresNs }) => expiresNs !== 0n);
    if (granted.length === 0 || prefix.length !== bitsOf(prefix.family)) return;
    const grants = granted.map(({ first, last, expiresNs }, index): [string, Grant] => [
      `${FOUND}${index}`,
      { ports: [[first, last]], expiresNs },
    ]);
    byAddress.set(formatPrefix(prefix), { prefix, byPattern: new Map(grants) });
  }

  function dropExpired(nowNs: bigint): Prefix | undefined {
    let first: { key: string; prefix: Prefix; endsNs: bigint } | undefined;
    for (const [key, { prefix, byPattern }] of byAddress) {
      const endsNs = [...byPattern.values()].reduce(
        (last, { expiresNs }) => (expiresNs > last ? expiresNs : last),
        0n,
      );
      if (endsNs <= nowNs && (first === undefined || endsNs < first.endsNs)) {
        first = { key, prefix, endsNs };
      }
    }
    if (first !== undefined) byAddress.delete(first.key);
    return first?.prefix;
  }

  function keepNamed(network: CompiledNetwork): void {
    const dedicated = new Map<string, NameRule>();
    for (const rule of network.names) if (rule.isDedicated) dedicated.set(rule.pattern, rule);
    for (const [key, { byPattern }] of byAddress) {
      for (const [pattern, grant] of byPattern) {
        const rule = dedicated.get(pattern);
        if (rule === undefined) byPattern.delete(pattern);
        else byPattern.set(pattern, { ...grant, ports: rule.ports });
      }
      if (byPattern.size === 0) byAddress.delete(key);
    }
  }

  function entries(rules: RuleSet): RuleEntry[] {
    const found: RuleEntry[] = [];
    for (const [key, place] of byAddress) {
      try {
        found.push(entryAt(place, rules));
      } catch {
        byAddress.delete(key);
      }
    }
    return found;
  }
  return {
    get size() {
      return byAddress.size;
    },
    has: (address) => byAddress.has(formatPrefix(hostPrefix(address))),
    add,
    restore,
    dropExpired,
    keepNamed,
    entries,
  };
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
