/**
 * Bytes in JSON and in URLs. Linux names and the output of commands are bytes, which JSON and URLs cannot
 * carry, but nearly always they are UTF-8. So every such value has two fields, here called `x` and
 * `xBase64`: `x` when the bytes are UTF-8 without NUL, otherwise `xBase64`, base64 (RFC 4648 §4, padded) of
 * the bytes. An input has exactly one of the two. In an output `xBase64` is present only where `x` would
 * not be exact; `x` is then a form to show, with U+FFFD where the bytes make no sense. Nothing else about
 * names needs a special form: in a URL both are ordinary query parameters.
 */
import { DsecError } from '@dsec/std';
import Type from 'typebox';

const LONE_SURROGATE = /\p{Surrogate}/u;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const utf8ToShow = new TextDecoder('utf-8', { ignoreBOM: true });

/** Schema of base64 of at most `bytesMax` bytes. */
export const base64 = (bytesMax: number, description?: string) =>
  Type.String({
    pattern: '^[A-Za-z0-9+/]*={0,2}$',
    maxLength: Math.ceil(bytesMax / 3) * 4,
    ...(description === undefined ? {} : { description }),
  });

export interface ByteText {
  readonly text?: string | undefined;
  readonly base64?: string | undefined;
}

/** The bytes of an input that has exactly one of two forms. `what` names the field in `invalid-argument`. */
export function bytesOfText({ text, base64 }: ByteText, what: string, bytesMax: number): Buffer {
  const fail = (problem: string) =>
    new DsecError('invalid-argument', `${what} ${problem}`, { details: { field: what } });
  if ((text === undefined) === (base64 === undefined)) {
    throw fail(`is needed in exactly one of two forms, ${what} or ${what}Base64`);
  }
  if (text !== undefined && LONE_SURROGATE.test(text)) throw fail('must not hold lone surrogates');
  const bytes = base64 === undefined ? Buffer.from(text as string) : Buffer.from(base64, 'base64');
  // One spelling for the same bytes, so that what was signed and what is compared is what is meant.
  if (base64 !== undefined && bytes.toString('base64') !== base64) {
    throw fail('must be base64 with padding');
  }
  if (bytes.length > bytesMax) throw fail(`must be at most ${bytesMax} bytes long`);
  return bytes;
}

/** The bytes of a path or name: not empty, and without NUL. */
export function bytesOfPath(path: ByteText, what: string, bytesMax: number): Buffer {
  const bytes = bytesOfText(path, what, bytesMax);
  if (bytes.length === 0 || bytes.includes(0)) {
    throw new DsecError('invalid-argument', `${what} must not be empty or hold NUL`, {
      details: { field: what },
    });
  }
  return bytes;
}

/** Bytes as an output shows them. */
export function textOfBytes(bytes: Uint8Array): {
  readonly text: string;
  readonly base64?: string;
} {
  if (!bytes.includes(0)) {
    try {
      return { text: utf8.decode(bytes) };
    } catch {
      // Not UTF-8: the second form.
    }
  }
  const exact = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  return { text: utf8ToShow.decode(bytes), base64: exact };
}
