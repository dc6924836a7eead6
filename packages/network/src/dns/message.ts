import { isIPv4 } from 'node:net';
import { DsecError } from '@dsec/std';
import { parseAddress } from '../rules/address.ts';

/** A query is one question, with options at most: more than this is none that we answer. */
export const DNS_QUERY_BYTES_MAX = 512;
const HEADER_BYTES = 12;
const NAME_BYTES_MAX = 255;
const LABEL_BYTES_MAX = 63;

export const DNS_TYPES = { a: 1, aaaa: 28, opt: 41 } as const;
export const DNS_CLASS_IN = 1;
export const DNS_CODES = {
  ok: 0,
  malformed: 1,
  failed: 2,
  noSuchName: 3,
  notImplemented: 4,
  refused: 5,
} as const;
export type DnsCode = (typeof DNS_CODES)[keyof typeof DNS_CODES];

export interface DnsQuery {
  readonly id: number;
  readonly isRecursionDesired: boolean;
  /** As sent, in any case; a byte that is no printable ASCII, a dot and a backslash stand as `\ddd`. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  /** The question as sent, which an answer repeats to the letter (0x20). */
  readonly question: Uint8Array;
}

export type DnsParsed =
  | { readonly kind: 'query'; readonly query: DnsQuery }
  /** Gets an answer that says so; `code` is what it says. */
  | { readonly kind: 'refused'; readonly id: number; readonly code: DnsCode }
  /** Gets no answer: too short to have one, or an answer itself. */
  | { readonly kind: 'ignored' };

/**
 * Reads a query: one question without compression, nothing else but one EDNS record, nothing behind it. Never
 * throws; the work is at most one pass over `DNS_QUERY_BYTES_MAX` bytes.
 */
export function parseDnsQuery(bytes: Uint8Array): DnsParsed {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.length < HEADER_BYTES) return { kind: 'ignored' };
  const id = view.readUInt16BE(0);
  const flags = view.readUInt16BE(2);
  if ((flags & 0x8000) !== 0) return { kind: 'ignored' };
  if ((flags & 0x7800) !== 0) return { kind: 'refused', id, code: DNS_CODES.notImplemented };
  const malformed = { kind: 'refused', id, code: DNS_CODES.malformed } as const;
  const counts = [4, 6, 8, 10].map((at) => view.readUInt16BE(at));
  const [questions, answers, authorities, additional = 0] = counts;
  if (view.length > DNS_QUERY_BYTES_MAX || (flags & 0x0200) !== 0) return malformed;
  if (questions !== 1 || answers !== 0 || authorities !== 0 || additional > 1) return malformed;
  const name = readName(view, HEADER_BYTES);
  if (name === undefined || name.end + 4 > view.length) return malformed;
  const end = name.end + 4;
  const optionsEnd = additional === 0 ? end : endOfOptions(view, end);
  if (optionsEnd !== view.length) return malformed;
  return {
    kind: 'query',
    query: {
      id,
      isRecursionDesired: (flags & 0x0100) !== 0,
      name: name.text,
      type: view.readUInt16BE(name.end),
      class: view.readUInt16BE(name.end + 2),
      question: view.subarray(HEADER_BYTES, end),
    },
  };
}

function readName(view: Buffer, start: number): { text: string; end: number } | undefined {
  const labels: string[] = [];
  let at = start;
  for (;;) {
    const length = view[at];
    if (length === undefined || length > LABEL_BYTES_MAX) return undefined;
    const next = at + 1 + length;
    if (next > view.length || next - start > NAME_BYTES_MAX) return undefined;
    if (length === 0) return { text: labels.join('.'), end: next };
    labels.push(escapeLabel(view.toString('latin1', at + 1, next)));
    at = next;
  }
}

const escapeLabel = (label: string) =>
  label.replace(/[^!-~]|[.\\]/g, (c) => `\\${String(c.charCodeAt(0)).padStart(3, '0')}`);

/** Where an EDNS record that starts here ends; `undefined` where another one starts. */
function endOfOptions(view: Buffer, start: number): number | undefined {
  if (start + 11 > view.length || view[start] !== 0) return undefined;
  if (view.readUInt16BE(start + 1) !== DNS_TYPES.opt) return undefined;
  return start + 11 + view.readUInt16BE(start + 9);
}

export interface DnsReply {
  readonly code: DnsCode;
  /** Addresses of the family that was asked for. */
  readonly addresses?: readonly string[];
  readonly ttlS?: number;
}

/** An answer to a query: its question to the letter, no EDNS, nothing but addresses. */
export function encodeDnsReply(
  query: DnsQuery,
  { code, addresses = [], ttlS = 0 }: DnsReply,
): Buffer {
  const header = encodeHeader(query.id, code, query.isRecursionDesired);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((address) => encodeRecord(address, ttlS));
  return Buffer.concat([header, query.question, ...records]);
}

/** An answer to what could not be read: no question, only the code. */
export function encodeDnsRefusal(id: number, code: DnsCode): Buffer {
  return encodeHeader(id, code, false);
}

function encodeHeader(id: number, code: DnsCode, isRecursionDesired: boolean): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(0x8080 | (isRecursionDesired ? 0x0100 : 0) | code, 2);
  return header;
}

function encodeRecord(text: string, ttlS: number): Buffer {
  const address = parseAddress(text);
  if (address === undefined) throw new DsecError('internal', `${text} is no address`);
  const isV4 = isIPv4(text);
  const data = Buffer.from(address.value.toString(16).padStart(isV4 ? 8 : 32, '0'), 'hex');
  const record = Buffer.alloc(12);
  // A pointer to the name in the question.
  record.writeUInt16BE(0xc00c, 0);
  record.writeUInt16BE(isV4 ? DNS_TYPES.a : DNS_TYPES.aaaa, 2);
  record.writeUInt16BE(DNS_CLASS_IN, 4);
  record.writeUInt32BE(ttlS, 6);
  record.writeUInt16BE(data.length, 10);
  return Buffer.concat([record, data]);
}
