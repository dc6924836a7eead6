import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { unlessAborted } from './running-time.ts';

/** A raw connection as the place where bytes come from and go to. It closes with the signal. */
export function duplexEnds(duplex: Duplex, signal: AbortSignal) {
  const chunks = duplex.iterator({ destroyOnReturn: false });
  // A connection that breaks ends its bytes; the request's own answer says the rest.
  duplex.on('error', () => {});
  signal.addEventListener('abort', () => duplex.destroy());
  return {
    source: {
      async read(): Promise<Uint8Array | undefined> {
        const next = await unlessAborted(chunks.next(), signal);
        return next?.done ? undefined : next?.value;
      },
    },
    sink: {
      async write(bytes: Uint8Array): Promise<void> {
        if (!duplex.write(bytes)) await once(duplex, 'drain', { signal });
      },
      end: () => void duplex.end(),
    },
    /** The host closes when it has what it wants. */
    isDone: async () => {
      duplex.end();
    },
  };
}
