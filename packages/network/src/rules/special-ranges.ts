import { bitsOf, contains, type Prefix, parseAddress, parsePrefix } from './address.ts';

/**
 * What is not the public Internet (the IANA special-purpose registries): this host, private and shared
 * networks, link-local ones with the clouds' metadata, multicast, documentation, and every form of IPv6 that
 * carries an IPv4 address inside it (mapped, NAT64, 6to4, Teredo).
 */
const SPECIAL = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // Metadata of a cloud, on an address that looks public.
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // All of IPv6 except 2000::/3, and what is special in there.
  '::/3',
  '4000::/2',
  '8000::/1',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
];

export const SPECIAL_RANGES: readonly Prefix[] = SPECIAL.map((text) => parsePrefix(text, 'range'));

export interface AddressFilterOptions {
  /** Ranges that never pass: the node's own addresses, its sandboxes', the store's. They win. */
  readonly denied: readonly string[];
  /** Special ranges that the operator lets names point into. */
  readonly permitted?: readonly string[] | undefined;
}

/** Judges addresses that a name server gave. */
export interface AddressFilter {
  /** Whether a sandbox's traffic may go there. What is no address may not. */
  isAllowed(address: string): boolean;
}

/** Nothing that is private, local or special passes, whoever says that a name points there (THREATS D2). */
export function createAddressFilter(options: AddressFilterOptions): AddressFilter {
  const denied = options.denied.map((text) => parsePrefix(text, 'denied'));
  const permitted = (options.permitted ?? []).map((text) => parsePrefix(text, 'permitted'));
  return {
    isAllowed(text) {
      const address = parseAddress(text);
      if (address === undefined) return false;
      const whole = { ...address, length: bitsOf(address.family) };
      const isIn = (ranges: readonly Prefix[]) => ranges.some((range) => contains(range, whole));
      if (isIn(denied)) return false;
      return !isIn(SPECIAL_RANGES) || isIn(permitted);
    },
  };
}
