/** Addresses of sandboxes: one for each slot, so that no two that live have the same. */
import { readFileSync } from 'node:fs';
import { DsecError } from '@dsec/std';

export interface AddressPool {
  /** In CIDR form. */
  readonly range: string;
  addressOf(slot: number): string;
  slotOf(address: string): number;
}

/** The first is the network's own, the second is left free. */
const FIRST = 2;

/** Throws `invalid-argument` for what is no IPv4 range, or one that does not hold all slots. */
export function createAddressPool(range: string, slotsMax: number): AddressPool {
  const { base, bits } = parseRange(range);
  const size = 2 ** (32 - bits);
  if (size < slotsMax + FIRST + 1) {
    throw new DsecError(
      'invalid-argument',
      `the pool ${range} has ${size} addresses, too few for ${slotsMax} sandboxes`,
    );
  }
  return {
    range,
    addressOf: (slot) => addressText(base + FIRST + slot),
    slotOf: (address) => addressValue(address) - base - FIRST,
  };
}

/**
 * Routes of this host that the pool overlaps, by /proc/net/route. Only sandboxes use the pool, so the host
 * reaches its neighbours as before; sandboxes never reach those whose addresses are in it.
 */
export function overlappingRoutes(
  range: string,
  table: string = readFileSync('/proc/net/route', 'latin1'),
): string[] {
  const { base, bits } = parseRange(range);
  const first = base;
  const last = base + 2 ** (32 - bits) - 1;
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [device = '', destination = '', , , , , , mask = ''] = line.split('\t');
      if (!/^[0-9A-F]{8}$/.test(destination) || !/^[0-9A-F]{8}$/.test(mask)) return [];
      const [from, size] = [hostOrder(destination), 2 ** 32 - hostOrder(mask)];
      const isDefault = size === 2 ** 32;
      if (isDefault || from > last || from + size - 1 < first) return [];
      return [`${addressText(from)}/${32 - Math.log2(size)} (${device})`];
    });
}

function parseRange(range: string): { readonly base: number; readonly bits: number } {
  const [, address = '', length = ''] = /^(\d+\.\d+\.\d+\.\d+)\/(\d{1,2})$/.exec(range) ?? [];
  const bytes = address.split('.').map(Number);
  const bits = Number(length);
  const base = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
  const isAddress = bytes.length === 4 && bytes.every((byte) => byte <= 255);
  if (!isAddress || bits < 8 || bits > 30 || base % 2 ** (32 - bits) !== 0) {
    throw new DsecError('invalid-argument', `${range} is no IPv4 range as 100.96.0.0/12`);
  }
  return { base, bits };
}

const addressValue = (text: string) =>
  text.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);

const addressText = (value: number) =>
  [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');

/** The table has numbers as they lie in memory. */
const hostOrder = (text: string) => Buffer.from(text, 'hex').readUInt32LE(0);
