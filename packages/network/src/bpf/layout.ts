import { type Address, formatAddress, type Prefix } from '../rules/address.ts';

/**
 * The structures of `native/bpf/policy.h`, byte by byte. Numbers are little endian, as the objects are;
 * addresses and nothing else in network order.
 */

/** Of one prefix. */
export const RANGES_MAX = 8;
export const GATEWAY_PORTS_MAX = 16;
/** Counts what no sandbox is known for. */
export const SLOT_UNKNOWN = 0;

export const PROTOCOLS = { icmp: 1, tcp: 6, udp: 17 } as const;

const MAPPED_BITS = 96;
const MAPPED = 0xffffn << 32n;

export const SETTINGS_BYTES = 16 + 4 * GATEWAY_PORTS_MAX;
export const SLOT_BYTES = 64;
export const OWNER_BYTES = 8;
export const RULE_KEY_BYTES = 24;
export const RULE_BYTES = 8 + 16 * RANGES_MAX;
export const REFUSED_KEY_BYTES = 20;
export const COUNTERS_BYTES = 72;
export const EVENT_BYTES = 64;

export interface GatewayPort {
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
}

export interface NodeSettings {
  readonly gateway: Address;
  readonly cgroupLevel: number;
  readonly eventsPerSecond: number;
  readonly ports: readonly GatewayPort[];
}

export function encodeSettings(settings: NodeSettings): Buffer {
  const bytes = Buffer.alloc(SETTINGS_BYTES);
  bytes.writeUInt32BE(Number(settings.gateway.value), 0);
  bytes.writeUInt32LE(settings.cgroupLevel, 4);
  bytes.writeUInt32LE(settings.eventsPerSecond, 8);
  bytes.writeUInt32LE(settings.ports.length, 12);
  for (const [index, { port, protocol }] of settings.ports.entries()) {
    bytes.writeUInt16LE(port, 16 + 4 * index);
    bytes[18 + 4 * index] = PROTOCOLS[protocol];
  }
  return bytes;
}

export interface SlotRecord {
  /** 0: the slot is free. */
  readonly generation: number;
  readonly version: number;
  readonly table: number;
  readonly mayUseProxies: boolean;
  readonly ipv4?: Address | undefined;
  readonly ipv6?: Address | undefined;
  /** Six bytes. */
  readonly mac?: Buffer | undefined;
}

export const FREE_SLOT: SlotRecord = {
  generation: 0,
  version: 0,
  table: 0,
  mayUseProxies: false,
};

const FLAGS = { proxies: 1, mac: 2, ipv4: 4, ipv6: 8 } as const;

export function encodeSlot(record: SlotRecord): Buffer {
  const bytes = Buffer.alloc(SLOT_BYTES);
  const flags =
    (record.mayUseProxies ? FLAGS.proxies : 0) |
    (record.mac ? FLAGS.mac : 0) |
    (record.ipv4 ? FLAGS.ipv4 : 0) |
    (record.ipv6 ? FLAGS.ipv6 : 0);
  bytes.writeUInt32LE(record.generation, 0);
  bytes.writeUInt32LE(record.version, 4);
  bytes.writeUInt32LE(record.table, 8);
  bytes.writeUInt32LE(flags, 12);
  if (record.ipv4) addressBytes(record.ipv4).copy(bytes, 16);
  if (record.ipv6) addressBytes(record.ipv6).copy(bytes, 32);
  record.mac?.copy(bytes, 48);
  return bytes;
}

/** As far as a restarted edge asks: the rest is the same, or the record is written anew. */
export function decodeSlot(bytes: Buffer): Pick<SlotRecord, 'generation' | 'version' | 'table'> {
  return {
    generation: bytes.readUInt32LE(0),
    version: bytes.readUInt32LE(4),
    table: bytes.readUInt32LE(8),
  };
}

/** Whether two records speak of the same sandbox with the same addresses, whatever its rules are. */
export function isSameOwner(a: Buffer, b: Buffer): boolean {
  return a.readUInt32LE(0) === b.readUInt32LE(0) && a.subarray(16, 54).equals(b.subarray(16, 54));
}

export interface Owner {
  readonly slot: number;
  readonly generation: number;
}

export function encodeOwner({ slot, generation }: Owner): Buffer {
  return Buffer.concat([uint32(slot), uint32(generation)]);
}

export function decodeOwner(bytes: Buffer): Owner {
  return { slot: bytes.readUInt32LE(0), generation: bytes.readUInt32LE(4) };
}

export interface RuleRange {
  readonly first: number;
  readonly last: number;
  /** 0: any. */
  readonly protocol: number;
  /** Of the monotonic clock; 0: never. */
  readonly expiresNs: bigint;
}

export interface RuleEntry {
  readonly prefix: Prefix;
  readonly ranges: readonly RuleRange[];
}

export function encodeRuleKey(table: number, prefix: Prefix): Buffer {
  return Buffer.concat([uint32(32 + mappedLength(prefix)), uint32(table), addressBytes(prefix)]);
}

export function tableOfRuleKey(key: Buffer): number {
  return key.readUInt32LE(4);
}

/** The prefix of a key that was written for one. */
export function prefixOfRuleKey(key: Buffer): Prefix {
  const address = addressOf(key.subarray(8));
  const length = key.readUInt32LE(0) - 32;
  if (address.family === 4) return { ...address, length: length - MAPPED_BITS };
  return { ...address, length };
}

export function encodeRule(ranges: readonly RuleRange[]): Buffer {
  const bytes = Buffer.alloc(RULE_BYTES);
  bytes.writeUInt32LE(ranges.length, 0);
  for (const [index, range] of ranges.entries()) {
    const at = 8 + 16 * index;
    bytes.writeBigUInt64LE(range.expiresNs, at);
    bytes.writeUInt16LE(range.first, at + 8);
    bytes.writeUInt16LE(range.last, at + 10);
    bytes[at + 12] = range.protocol;
  }
  return bytes;
}

export function decodeRule(bytes: Buffer): RuleRange[] {
  const count = Math.min(bytes.readUInt32LE(0), RANGES_MAX);
  return Array.from({ length: count }, (_, index) => {
    const at = 8 + 16 * index;
    return {
      first: bytes.readUInt16LE(at + 8),
      last: bytes.readUInt16LE(at + 10),
      protocol: bytes[at + 12] ?? 0,
      expiresNs: bytes.readBigUInt64LE(at),
    };
  });
}

export function encodeRefusedKey(prefix: Prefix): Buffer {
  return Buffer.concat([uint32(mappedLength(prefix)), addressBytes(prefix)]);
}

/** What a sandbox was denied since it was added. */
export interface DenialCounters {
  readonly callsDenied: number;
  readonly packetsDeniedOut: number;
  readonly packetsDeniedIn: number;
  /** Greetings and complaints that kernels send by themselves, dropped without an event. */
  readonly packetsIgnored: number;
  /** Denials that were counted and not told, being more than the quota. */
  readonly eventsLost: number;
}

export function decodeCounters(bytes: Buffer): DenialCounters {
  const counter = (index: number) => Number(bytes.readBigUInt64LE(8 * index));
  return {
    callsDenied: counter(0),
    packetsDeniedOut: counter(1),
    packetsDeniedIn: counter(2),
    packetsIgnored: counter(3),
    eventsLost: counter(4),
  };
}

const HOOKS = ['unknown', 'socket', 'bind', 'connect', 'send', 'packet-out', 'packet-in'] as const;
const REASONS = [
  'unknown',
  'no-rule',
  'expired',
  'refused-address',
  'wrong-source',
  'socket-kind',
  'fragment',
  'unparsed',
  'multicast',
  'unknown-sandbox',
  'inward',
  'icmp-error',
] as const;

/** One denial, as the kernel told it. Nothing in here but the command's name is of the sandbox's making. */
export interface DenialEvent {
  /** Of the monotonic clock. */
  readonly timeNs: bigint;
  /** 0: of no known sandbox. */
  readonly slot: number;
  readonly generation: number;
  /** Of the rules that were in force. */
  readonly version: number;
  /** As the host numbers it; 0 for a packet, which has no process. */
  readonly pid: number;
  /** What the process calls itself: hostile bytes, as Latin-1. */
  readonly command: string;
  readonly hook: (typeof HOOKS)[number];
  readonly reason: (typeof REASONS)[number];
  readonly family: number;
  readonly protocol: number;
  /** Where to. Empty where no address was named. */
  readonly address: string;
  /** For the hook `socket`, the kind of socket. */
  readonly port: number;
}

export function decodeEvent(bytes: Buffer): DenialEvent {
  const comm = bytes.subarray(40, 56);
  const end = comm.indexOf(0);
  const hook = HOOKS[bytes[60] ?? 0] ?? 'unknown';
  const family = bytes[58] ?? 0;
  const hasAddress = hook !== 'socket' && family !== 0;
  return {
    timeNs: bytes.readBigUInt64LE(0),
    slot: bytes.readUInt32LE(8),
    generation: bytes.readUInt32LE(12),
    version: bytes.readUInt32LE(16),
    pid: bytes.readUInt32LE(20),
    command: comm.toString('latin1', 0, end < 0 ? comm.length : end),
    hook,
    reason: REASONS[bytes[61] ?? 0] ?? 'unknown',
    family,
    protocol: bytes[59] ?? 0,
    address: hasAddress ? formatAddress(addressOf(bytes.subarray(24, 40))) : '',
    port: bytes.readUInt16LE(56),
  };
}

/** 16 bytes; IPv4 addresses are mapped. */
export function addressBytes({ family, value }: Address): Buffer {
  const mapped = family === 4 ? MAPPED | value : value;
  return Buffer.from(mapped.toString(16).padStart(32, '0'), 'hex');
}

function addressOf(bytes: Buffer): Address {
  const value = BigInt(`0x${bytes.toString('hex')}`);
  if (value >> 32n === 0xffffn) return { family: 4, value: value & 0xffff_ffffn };
  return { family: 6, value };
}

function mappedLength({ family, length }: Prefix): number {
  return family === 4 ? MAPPED_BITS + length : length;
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
