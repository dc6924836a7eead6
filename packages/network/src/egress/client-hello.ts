import { DsecError, KIB } from '@dsec/std';
import { normalizeWireName } from '../rules/name.ts';

/** A ClientHello with every extension of our days has under 3 KiB, also with post-quantum keys. */
export const CLIENT_HELLO_BYTES_MAX = 16 * KIB;
/** Cut into more records than this, it is made to be read differently. */
const RECORDS_MAX = 64;
const RECORD_BYTES_MAX = 16 * KIB;
const RECORD_HEADER_BYTES = 5;
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const EXTENSIONS = { serverName: 0, alpn: 16, ech: 0xfe0d, esni: 0xffce, outer: 0xfd00 } as const;

export interface ClientHello {
  /** In normal form; absent where the client named nobody. */
  readonly serverName: string | undefined;
  readonly protocols: readonly string[];
  /** Names somebody else inside, encrypted, or may do so: the two cannot be told apart. */
  readonly isEncrypted: boolean;
}

/** Whether bytes can be the begin of TLS: a record that holds a handshake. */
export function isTlsStart(bytes: Uint8Array): boolean {
  return bytes[0] === HANDSHAKE;
}

/**
 * Reads a ClientHello from the begin of a connection; `undefined` while more bytes are needed. The same bytes
 * give the same result however they come in pieces. Throws `protocol` for everything that is none, is too
 * long, cut into too many records, or names itself twice.
 */
export function parseClientHello(bytes: Uint8Array): ClientHello | undefined {
  const message = joinRecords(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  return message === undefined ? undefined : readHello(createReader(message));
}

const malformed = (why: string) => new DsecError('protocol', `TLS: ${why}`);

/** The first handshake message, as far as records of it are whole. */
function joinRecords(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  let length = 0;
  let at = 0;
  for (let records = 0; at < bytes.length; records += 1) {
    if (records === RECORDS_MAX) throw malformed('too many records');
    if (bytes[at] !== HANDSHAKE) throw malformed('not a handshake');
    if (bytes.length > at + 1 && bytes[at + 1] !== 3) throw malformed('not TLS');
    if (bytes.length < at + RECORD_HEADER_BYTES) return undefined;
    const size = bytes.readUInt16BE(at + 3);
    if (size === 0 || size > RECORD_BYTES_MAX) throw malformed('a record of no valid length');
    const part = bytes.subarray(at + RECORD_HEADER_BYTES, at + RECORD_HEADER_BYTES + size);
    parts.push(part);
    length += part.length;
    const whole = wholeMessage(parts, length);
    if (whole !== undefined) return whole;
    at += RECORD_HEADER_BYTES + size;
  }
  return undefined;
}

function wholeMessage(parts: readonly Buffer[], length: number): Buffer | undefined {
  if (length === 0) return undefined;
  const header = Buffer.concat(parts, Math.min(length, 4));
  if (header[0] !== CLIENT_HELLO) throw malformed('not a ClientHello');
  if (length < 4) return undefined;
  const size = header.readUIntBE(1, 3);
  if (size > CLIENT_HELLO_BYTES_MAX - 4) throw malformed('a ClientHello that is too long');
  // Nothing may follow before the server has answered, early data aside, which has a record of its own.
  if (length > size + 4) throw malformed('more than a ClientHello in its records');
  return length === size + 4 ? Buffer.concat(parts).subarray(4) : undefined;
}

interface Reader {
  readonly left: number;
  number(bytes: number): number;
  /** Bytes whose count stands before them, in so many bytes. */
  vector(countBytes: number): Reader;
  text(): string;
}

function createReader(bytes: Buffer): Reader {
  let at = 0;
  const take = (count: number) => {
    if (at + count > bytes.length) throw malformed('a length beyond the end');
    at += count;
    return bytes.subarray(at - count, at);
  };
  const number = (count: number) => take(count).readUIntBE(0, count);
  return {
    get left() {
      return bytes.length - at;
    },
    number,
    vector: (countBytes) => createReader(take(number(countBytes))),
    text: () => take(bytes.length - at).toString('latin1'),
  };
}

function readHello(reader: Reader): ClientHello {
  // Version, then the random bytes.
  reader.number(2);
  for (let i = 0; i < 8; i += 1) reader.number(4);
  reader.vector(1);
  reader.vector(2);
  reader.vector(1);
  if (reader.left === 0) return { serverName: undefined, protocols: [], isEncrypted: false };
  const extensions = readExtensions(reader.vector(2));
  if (reader.left > 0) throw malformed('bytes behind the extensions');
  const { ech, esni, outer } = EXTENSIONS;
  const names = extensions.get(EXTENSIONS.serverName);
  const protocols = extensions.get(EXTENSIONS.alpn);
  return {
    serverName: names && readServerName(names),
    protocols: protocols === undefined ? [] : readProtocols(protocols),
    isEncrypted: [ech, esni, outer].some((type) => extensions.has(type)),
  };
}

/** Types that mean nothing (GREASE) are extensions like others. None may stand twice. */
function readExtensions(reader: Reader): Map<number, Reader> {
  const extensions = new Map<number, Reader>();
  while (reader.left > 0) {
    const type = reader.number(2);
    if (extensions.has(type)) throw malformed('an extension twice');
    extensions.set(type, reader.vector(2));
  }
  return extensions;
}

function readServerName(extension: Reader): string {
  const list = extension.vector(2);
  const type = list.number(1);
  const text = list.vector(2).text();
  if (type !== 0 || list.left > 0 || extension.left > 0) throw malformed('a list of server names');
  const name = text.endsWith('.') ? undefined : normalizeWireName(text);
  if (name === undefined) throw malformed('a server name that is no host name');
  return name;
}

function readProtocols(extension: Reader): string[] {
  const list = extension.vector(2);
  const protocols: string[] = [];
  while (list.left > 0) protocols.push(list.vector(1).text());
  return protocols;
}

/** What tells a TLS client that its connection is not permitted, before anything else was said. */
export const TLS_ACCESS_DENIED: Buffer = Buffer.from([21, 3, 1, 0, 2, 2, 49]);
/** The same for a fault on the way, so that a client tells the two apart. */
export const TLS_INTERNAL_ERROR: Buffer = Buffer.from([21, 3, 1, 0, 2, 2, 80]);
