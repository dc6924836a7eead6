import type { Duplex } from 'node:stream';
import { NONCE_BYTES } from '@dsec/protocol';
import { assert, DsecError } from '@dsec/std';

/**
 * Makes the second connection of a request that was sent with `rawToken`: what follows the token are the
 * bytes of the file or port. It serves once, and its end never says how the request ended (THREATS A7): wait
 * for `done` on the framed stream. Rejects with what `dial` says, or `unavailable`.
 */
export async function openRaw(
  dial: (signal?: AbortSignal) => Promise<Duplex>,
  token: Uint8Array,
  signal?: AbortSignal,
): Promise<Duplex> {
  assert(token.byteLength === NONCE_BYTES, `a raw token has ${NONCE_BYTES} bytes`);
  const duplex = await dial(signal);
  await new Promise<void>((resolve, reject) => {
    const lost = (cause?: Error) =>
      reject(new DsecError('unavailable', 'the raw stream was lost', { cause }));
    duplex.once('error', lost);
    duplex.write(token, (cause) => {
      if (cause) return lost(cause);
      duplex.off('error', lost);
      resolve();
    });
  });
  return duplex;
}
