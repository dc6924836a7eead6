import { DsecError, KIB } from '@dsec/std';
import { type ClientHello, parseClientHello } from './client-hello.ts';

const HANDSHAKE = 22;
/** What may stand before a second ClientHello: a record for old middleboxes, and early data. */
const BEFORE_SECOND_HELLO: ReadonlySet<number | undefined> = new Set([20, 23]);
const EARLY_BYTES_MAX = 64 * KIB;
/** Record header, message header, version. */
const RANDOM_AT = 11;
/** The random bytes by which a ServerHello asks for another ClientHello (RFC 8446, 4.1.3). */
const RETRY_RANDOM = Buffer.from(
  'cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c',
  'hex',
);

/** Whether a server's first bytes ask for another ClientHello; `undefined` while more are needed. */
export function isHelloRetry(bytes: Buffer): boolean | undefined {
  if (bytes.length > 0 && bytes[0] !== HANDSHAKE) return false;
  if (bytes.length < RANDOM_AT + RETRY_RANDOM.length) return undefined;
  return bytes.subarray(RANDOM_AT, RANDOM_AT + RETRY_RANDOM.length).equals(RETRY_RANDOM);
}

/**
 * Reads the ClientHello that a client sends again when it was asked to. It names its host anew, and nothing
 * but this check makes it the same name. As `parseClientHello` otherwise.
 */
export function parseSecondHello(bytes: Buffer): ClientHello | undefined {
  let at = 0;
  while (BEFORE_SECOND_HELLO.has(bytes[at])) {
    if (at > EARLY_BYTES_MAX) throw new DsecError('protocol', 'TLS: too much before a ClientHello');
    if (bytes.length < at + 5) return undefined;
    at += 5 + bytes.readUInt16BE(at + 3);
  }
  return at >= bytes.length ? undefined : parseClientHello(bytes.subarray(at));
}
