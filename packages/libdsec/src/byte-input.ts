/** Text and bytes as callers give them. */
import { textOfBytes } from '@dsec/protocol';
import { clientErrorOf } from './errors.ts';

/** A path or name inside a sandbox: text, or bytes, as Linux names may be any. */
export type Path = string | Uint8Array;
/** Bytes one piece after the other: they can be had once. */
export type Pieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
/** What a function gives is the same each time, so that it can be sent again. */
export type ByteSource = Uint8Array | string | Pieces | (() => Pieces);

export function bytesOf(data: Uint8Array | string): Uint8Array {
  return typeof data === 'string' ? Buffer.from(data) : data;
}

/** A body for a request: bytes as they are, as only those can be sent again; else pieces as they come. */
export function bodyOf(
  data: Exclude<ByteSource, () => Pieces>,
): Uint8Array | AsyncIterable<Uint8Array> {
  if (typeof data === 'string' || data instanceof Uint8Array) return bytesOf(data);
  return piecesOf(data);
}

/** What goes wrong in them is no fault of the connection's. */
export async function* piecesOf(data: Pieces): AsyncGenerator<Uint8Array> {
  try {
    yield* data;
  } catch (thrown) {
    throw clientErrorOf(thrown);
  }
}

/** Of the two forms of a field (byte-text.ts of the protocol) the one that a path needs. */
export function pathFields<Name extends string>(name: Name, path: Path) {
  const text = typeof path === 'string' ? { text: path } : textOfBytes(path);
  const isExact = typeof path === 'string' || !('base64' in text);
  const fields = isExact ? { [name]: text.text } : { [`${name}Base64`]: base64Of(path) };
  return fields as { readonly [K in Name | `${Name}Base64`]?: string };
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}
