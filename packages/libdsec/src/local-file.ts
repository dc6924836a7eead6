/** Files of this machine, as bodies and as targets. */
import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { KIB } from '@dsec/std';
import { piecesOf } from './byte-input.ts';
import { clientErrorOf } from './errors.ts';
import { createPatience } from './patience.ts';

const PIECE_BYTES = 256 * KIB;

export type OnProgress = (bytes: number) => void;

/** The bytes of a local file, from its beginning at each call. */
export async function* readLocal(
  path: string,
  onProgress?: OnProgress,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  const pieces = createReadStream(path, { highWaterMark: PIECE_BYTES });
  for await (const piece of piecesOf(pieces)) {
    yield piece;
    bytes += piece.byteLength;
    onProgress?.(bytes);
  }
}

/**
 * Sends a body that can be made anew, again when the connection is lost, for `limitMs` at most. `onlyUnsent`:
 * only where nothing of it can have arrived.
 */
export async function sendAgain<T>(
  limitMs: number,
  signal: AbortSignal | undefined,
  send: () => Promise<T>,
  onlyUnsent = false,
): Promise<T> {
  const patience = createPatience(limitMs);
  for (;;) {
    try {
      return await send();
    } catch (thrown) {
      const error = clientErrorOf(thrown);
      if (onlyUnsent && error.details.reached !== false) throw error;
      await patience.pause(error, signal);
    }
  }
}

/** Writes a local file as a whole: under another name first, so that a broken transfer leaves nothing. */
export async function writeLocal(
  path: string,
  body: AsyncIterable<Uint8Array>,
  onProgress?: OnProgress,
): Promise<void> {
  const partial = `${path}.${randomBytes(6).toString('hex')}.part`;
  let isDone = false;
  const file = await open(partial, 'wx').catch((thrown) => {
    throw clientErrorOf(thrown);
  });
  try {
    let bytes = 0;
    for await (const piece of body) {
      await file.writeFile(piece);
      bytes += piece.byteLength;
      onProgress?.(bytes);
    }
    await file.close();
    await rename(partial, path);
    isDone = true;
  } catch (thrown) {
    throw clientErrorOf(thrown);
  } finally {
    if (!isDone) {
      await file.close().catch(() => {});
      await rm(partial, { force: true });
    }
  }
}
