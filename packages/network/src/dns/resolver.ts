import { Resolver } from 'node:dns/promises';
import { type Clock, DsecError, systemClock } from '@dsec/std';
import { createRecentMap } from '../recent-map.ts';
import type { AddressFilter } from '../rules/special-ranges.ts';

export interface ResolvedAddress {
  readonly address: string;
  readonly ttlS: number;
}

/** Asks name servers. Rejects with `not-found` where the name has none, or `unavailable`. */
export interface Upstream {
  lookup(name: string, family: 4 | 6): Promise<readonly ResolvedAddress[]>;
}

export interface UpstreamOptions {
  /** Addresses of name servers, `1.2.3.4` or `1.2.3.4:53`; absent: those of the host. */
  readonly servers?: readonly string[] | undefined;
  readonly timeoutMs?: number | undefined;
  readonly tries?: number | undefined;
}

/**
 * Name servers through c-ares: a socket and a port of its own for each run of queries, random ids, answers
 * only from the server asked and only to the question asked, TCP where an answer was cut.
 */
export function createUpstream({
  servers,
  timeoutMs = 2000,
  tries = 2,
}: UpstreamOptions): Upstream {
  const resolver = new Resolver({ timeout: timeoutMs, tries });
  if (servers !== undefined) resolver.setServers([...servers]);
  return {
    async lookup(name, family) {
      try {
        // The dot at the end: nothing of the host's search list is added.
        const records =
          family === 4
            ? await resolver.resolve4(`${name}.`, { ttl: true })
            : await resolver.resolve6(`${name}.`, { ttl: true });
        return records.map(({ address, ttl }) => ({ address, ttlS: ttl }));
      } catch (thrown) {
        const code = (thrown as { code?: unknown }).code;
        if (code === 'ENODATA') return [];
        const isAbsent = code === 'ENOTFOUND';
        throw new DsecError(
          isAbsent ? 'not-found' : 'unavailable',
          isAbsent ? `${name} does not exist` : `the name servers do not resolve ${name}`,
          { cause: thrown },
        );
      }
    },
  };
}

export interface NameResolverLimits {
  readonly namesMax: number;
  readonly lookupsMax: number;
  readonly addressesMax: number;
  /** However short a name server says: a name that changes with each question is asked for less often. */
  readonly ttlMinS: number;
  readonly ttlMaxS: number;
  /** How long a failure is remembered. */
  readonly failureTtlS: number;
}

export const NAME_RESOLVER_LIMITS: NameResolverLimits = {
  namesMax: 16_384,
  lookupsMax: 1024,
  addressesMax: 16,
  ttlMinS: 5,
  ttlMaxS: 300,
  failureTtlS: 5,
};

/** Addresses of names that may be reached, for the DNS and the egress proxy alike. */
export interface NameResolver {
  /**
   * What the name servers say, without every address that the filter refuses. Rejects with `not-found`,
   * `unavailable`, `overloaded` (too many lookups at a time), and `permission-denied` where no address
   * passes the filter.
   */
  resolve(name: string, family: 4 | 6): Promise<readonly ResolvedAddress[]>;
}

export interface NameResolverOptions {
  readonly upstream: Upstream;
  readonly filter: AddressFilter;
  readonly clock?: Clock | undefined;
  readonly limits?: NameResolverLimits | undefined;
}

interface Remembered {
  readonly untilMs: number;
  readonly addresses: readonly string[] | DsecError;
}

/** Resolves each name once at a time, and remembers for as long as the answer says, within limits. */
export function createNameResolver(options: NameResolverOptions): NameResolver {
  const { upstream, filter, clock = systemClock, limits = NAME_RESOLVER_LIMITS } = options;
  const cache = createRecentMap<string, Remembered>(limits.namesMax);
  const running = new Map<string, Promise<Remembered>>();

  const lookup = async (name: string, family: 4 | 6): Promise<Remembered> => {
    try {
      const found = await upstream.lookup(name, family);
      const allowed = found.filter(({ address }) => filter.isAllowed(address));
      if (allowed.length === 0 && found.length > 0) {
        throw new DsecError('permission-denied', `${name} points to addresses that are not public`);
      }
      const ttlS = Math.min(limits.ttlMaxS, ...allowed.map((one) => one.ttlS));
      return {
        untilMs: clock.monotonicMs() + Math.max(limits.ttlMinS, ttlS) * 1000,
        addresses: allowed.slice(0, limits.addressesMax).map(({ address }) => address),
      };
    } catch (thrown) {
      if (!(thrown instanceof DsecError)) throw thrown;
      return { untilMs: clock.monotonicMs() + limits.failureTtlS * 1000, addresses: thrown };
    }
  };

  const start = (key: string, name: string, family: 4 | 6) => {
    if (running.size >= limits.lookupsMax) {
      throw new DsecError('overloaded', `${limits.lookupsMax} names are being looked up`);
    }
    const work = lookup(name, family)
      .then((result) => {
        cache.set(key, result);
        return result;
      })
      .finally(() => running.delete(key));
    running.set(key, work);
    return work;
  };

  return {
    async resolve(name, family) {
      const key = `${family} ${name}`;
      const known = cache.get(key);
      const isFresh = known !== undefined && known.untilMs > clock.monotonicMs();
      const { addresses, untilMs } = isFresh
        ? known
        : await (running.get(key) ?? start(key, name, family));
      if (addresses instanceof DsecError) throw addresses;
      const ttlS = Math.max(1, Math.ceil((untilMs - clock.monotonicMs()) / 1000));
      return addresses.map((address) => ({ address, ttlS }));
    },
  };
}
