import { asDsecError, type Clock, systemClock } from '@dsec/std';
import type { DenialReporter } from '../denials.ts';
import { createRecentMap } from '../recent-map.ts';
import type { NameRule } from '../rules/compiled.ts';
import { findNameRule } from '../rules/match.ts';
import { normalizeWireName } from '../rules/name.ts';
import type { DenialReason, FindSandbox, NetworkedSandbox } from '../seams.ts';
import { createTokenBucket, type TokenBucket, type TokenBucketLimits } from '../token-bucket.ts';
import {
  DNS_CLASS_IN,
  DNS_CODES,
  DNS_TYPES,
  type DnsQuery,
  type DnsReply,
  encodeDnsRefusal,
  encodeDnsReply,
  parseDnsQuery,
} from './message.ts';
import type { NameGuard } from './name-guard.ts';
import type { NameResolver, ResolvedAddress } from './resolver.ts';

export interface DnsLimits {
  readonly perSandbox: TokenBucketLimits;
  readonly total: TokenBucketLimits;
  readonly sandboxesMax: number;
  /** Queries for dedicated names that wait for name servers, of one sandbox and of all. */
  readonly waitingPerSandboxMax: number;
  readonly waitingMax: number;
  /** How long a sandbox may remember that a name is at the gateway. */
  readonly gatewayTtlS: number;
}

export const DNS_LIMITS: DnsLimits = {
  perSandbox: { perSecond: 100, burst: 200 },
  total: { perSecond: 20_000, burst: 20_000 },
  sandboxesMax: 16_384,
  waitingPerSandboxMax: 16,
  waitingMax: 1024,
  gatewayTtlS: 30,
};

/** Addresses of a dedicated name, before the sandbox hears of them. */
export interface DedicatedAnswer {
  readonly name: string;
  readonly rule: NameRule;
  readonly addresses: readonly ResolvedAddress[];
}

export interface DnsAnswererOptions {
  readonly findSandbox: FindSandbox;
  /** Where the egress proxy listens: the IPv4 address that stands for every name that is not dedicated. */
  readonly gatewayAddress: string;
  readonly resolver: NameResolver;
  readonly guard: NameGuard;
  readonly denials: DenialReporter;
  /** Opens the addresses to the sandbox. The answer waits for it; where it rejects, the query fails. */
  readonly onDedicated: (
    sandbox: NetworkedSandbox,
    answer: DedicatedAnswer,
  ) => void | Promise<void>;
  /** Answers AAAA for dedicated names too; otherwise every AAAA answer is empty. */
  readonly isIpv6Enabled?: boolean | undefined;
  readonly limits?: DnsLimits | undefined;
  readonly clock?: Clock | undefined;
}

export interface DnsAnswerer {
  /** The answer to a message from an address; `undefined`: none. Never rejects. */
  answer(message: Uint8Array, sourceAddress: string): Promise<Buffer | undefined>;
}

const DEDICATED_TTL_S_MAX = 300;
const REFUSED: DnsReply = { code: DNS_CODES.refused };
const NO_SUCH_NAME: DnsReply = { code: DNS_CODES.noSuchName };
const FAILED: DnsReply = { code: DNS_CODES.failed };

/**
 * Decides what each query gets (THREATS D2). A name that no rule opens does not exist; an open one is at the
 * gateway, without a question to anybody outside; only dedicated names are resolved.
 */
export function createDnsAnswerer(options: DnsAnswererOptions): DnsAnswerer {
  const { findSandbox, gatewayAddress, guard, denials, isIpv6Enabled = false } = options;
  const { limits = DNS_LIMITS, clock = systemClock } = options;
  const total = createTokenBucket(limits.total);
  const loads = createLoads(limits);
  const answerDedicated = dedicatedAnswerer(options, loads);

  const deny = (sandbox: NetworkedSandbox, reason: DenialReason, name?: string) =>
    denials.report({ sandbox: sandbox.id, at: 'dns', reason, name: name?.slice(0, 253) });

  const judge = (sandbox: NetworkedSandbox, query: DnsQuery, source: string) => {
    const isAddressType = query.type === DNS_TYPES.a || query.type === DNS_TYPES.aaaa;
    if (query.class !== DNS_CLASS_IN || !isAddressType) {
      deny(sandbox, 'query-type', query.name);
      return REFUSED;
    }
    const name = normalizeWireName(query.name);
    const rule = name === undefined ? undefined : findNameRule(sandbox.network, name);
    if (name === undefined || rule === undefined) {
      deny(sandbox, 'name', query.name);
      return NO_SUCH_NAME;
    }
    if (!guard.admits(sandbox.id, name, rule)) {
      deny(sandbox, 'name-shape', name);
      return REFUSED;
    }
    const family = query.type === DNS_TYPES.a ? 4 : 6;
    if (family === 6 && !(isIpv6Enabled && rule.isDedicated)) return { code: DNS_CODES.ok };
    if (rule.isDedicated) return answerDedicated({ sandbox, source, name, rule, family });
    return { code: DNS_CODES.ok, addresses: [gatewayAddress], ttlS: limits.gatewayTtlS };
  };

  return {
    async answer(message, source) {
      const nowMs = clock.monotonicMs();
      const sandbox = findSandbox(source);
      if (sandbox === undefined) return undefined;
      // Its own share first: what one asks beyond that takes nothing from the node's.
      if (!loads.of(sandbox.id).bucket.take(nowMs)) {
        deny(sandbox, 'rate');
        return undefined;
      }
      if (!total.take(nowMs)) return undefined;
      const parsed = parseDnsQuery(message);
      if (parsed.kind === 'query') {
        return encodeDnsReply(parsed.query, await judge(sandbox, parsed.query, source));
      }
      deny(sandbox, 'malformed');
      return parsed.kind === 'ignored' ? undefined : encodeDnsRefusal(parsed.id, parsed.code);
    },
  };
}

interface Load {
  readonly bucket: TokenBucket;
  waiting: number;
}

interface Loads {
  of(sandbox: string): Load;
  /** Runs `work` where another query may wait for name servers; `undefined` where none may. */
  wait<T>(sandbox: string, work: () => Promise<T>): Promise<T | undefined>;
}

function createLoads(limits: DnsLimits): Loads {
  const loads = createRecentMap<string, Load>(limits.sandboxesMax);
  let waiting = 0;
  const of = (sandbox: string) => {
    let load = loads.get(sandbox);
    if (load === undefined) {
      load = { bucket: createTokenBucket(limits.perSandbox), waiting: 0 };
      loads.set(sandbox, load);
    }
    return load;
  };
  return {
    of,
    async wait(sandbox, work) {
      const load = of(sandbox);
      if (waiting >= limits.waitingMax || load.waiting >= limits.waitingPerSandboxMax)
        return undefined;
      waiting += 1;
      load.waiting += 1;
      try {
        return await work();
      } finally {
        waiting -= 1;
        load.waiting -= 1;
      }
    },
  };
}

interface DedicatedQuery {
  readonly sandbox: NetworkedSandbox;
  readonly source: string;
  readonly name: string;
  readonly rule: NameRule;
  readonly family: 4 | 6;
}

function dedicatedAnswerer(options: DnsAnswererOptions, loads: Loads) {
  const { findSandbox, resolver, onDedicated, denials, limits = DNS_LIMITS } = options;

  const addressesOf = async ({ name, rule, family }: DedicatedQuery) =>
    rule.addresses
      ?.filter((address) => address.includes(':') === (family === 6))
      .map((address) => ({ address, ttlS: limits.gatewayTtlS })) ??
    (await resolver.resolve(name, family));

  const resolve = async (query: DedicatedQuery): Promise<DnsReply> => {
    const addresses = await addressesOf(query);
    // The rules may have changed while the name servers thought.
    const { source, name } = query;
    const sandbox = findSandbox(source);
    const rule = sandbox === undefined ? undefined : findNameRule(sandbox.network, name);
    if (sandbox?.id !== query.sandbox.id || rule?.isDedicated !== true) return NO_SUCH_NAME;
    if (addresses.length > 0) await onDedicated(sandbox, { name, rule, addresses });
    const ttlS = Math.min(...addresses.map((one) => one.ttlS), DEDICATED_TTL_S_MAX);
    return { code: DNS_CODES.ok, addresses: addresses.map((one) => one.address), ttlS };
  };

  return async (query: DedicatedQuery): Promise<DnsReply> => {
    try {
      return (await loads.wait(query.sandbox.id, () => resolve(query))) ?? FAILED;
    } catch (thrown) {
      const { code } = asDsecError(thrown);
      if (code === 'not-found') return NO_SUCH_NAME;
      if (code !== 'permission-denied') return FAILED;
      denials.report({ sandbox: query.sandbox.id, at: 'dns', reason: 'answer', name: query.name });
      return REFUSED;
    }
  };
}
