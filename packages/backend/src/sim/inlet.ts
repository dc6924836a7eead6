import { WINDOW_BYTES_MIN } from '@dsec/protocol';
import { DsecError } from '@dsec/std';

/** What the agent says about the bytes that it has taken. */
export type InletAnswer = { readonly type: 'ack' | 'credit'; readonly offset: number };

/** Bytes from the host on their way to whoever reads them. */
export interface Inlet {
  /** Takes a data frame. A gap, an overlap, or more than the credit: throws `protocol`. */
  take(offset: number, bytes: Uint8Array, end: boolean): void;
  /** The next bytes; undefined at the end. Readers are served in order. */
  read(signal?: AbortSignal): Promise<Uint8Array | undefined>;
  /** Nobody reads any more: what comes is taken and dropped. */
  close(): void;
  /** What is owed to the host, one at a time. */
  answer(): InletAnswer | undefined;
  readonly taken: number;
  readonly credit: number;
  readonly isEnded: boolean;
}

interface Reader {
  resolve(bytes: Uint8Array | undefined): void;
}

/** `isOpen` false: at its end from the start. `onAnswer` says that something is owed. */
export function createInlet(isOpen: boolean, onAnswer: () => void): Inlet {
  const waiting: Uint8Array[] = [];
  const readers: Reader[] = [];
  let taken = 0;
  let used = 0;
  let acknowledged = 0;
  let credit = isOpen ? WINDOW_BYTES_MIN : 0;
  let ended = !isOpen;
  let closed = false;

  const owesAck = () =>
    taken - acknowledged >= WINDOW_BYTES_MIN / 2 || (ended && taken > acknowledged);
  const owesCredit = () => !ended && used + WINDOW_BYTES_MIN - credit >= WINDOW_BYTES_MIN / 2;
  const serve = () => {
    while (readers.length > 0) {
      const bytes = waiting.shift();
      if (bytes === undefined && !ended) return;
      used += bytes?.byteLength ?? 0;
      readers.shift()?.resolve(bytes);
    }
  };
  const settle = () => {
    serve();
    if (owesAck() || owesCredit()) onAnswer();
  };
  const drop = () => {
    used = taken;
    waiting.length = 0;
  };
  return {
    take(offset, bytes, end) {
      if (ended || offset !== taken || taken + bytes.byteLength > credit) {
        throw new DsecError('protocol', `input of ${bytes.byteLength} bytes at ${offset}`);
      }
      taken += bytes.byteLength;
      ended = end;
      if (bytes.byteLength > 0) waiting.push(bytes);
      if (closed) drop();
      settle();
    },
    read(signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const onAbort = () => {
          readers.splice(readers.indexOf(reader), 1);
          reject(signal?.reason);
        };
        const reader: Reader = {
          resolve(bytes) {
            signal?.removeEventListener('abort', onAbort);
            resolve(bytes);
          },
        };
        signal?.addEventListener('abort', onAbort, { once: true });
        readers.push(reader);
        settle();
      });
    },
    close() {
      closed = true;
      drop();
      settle();
    },
    answer() {
      if (owesAck()) {
        acknowledged = taken;
        return { type: 'ack', offset: taken };
      }
      if (!owesCredit()) return undefined;
      credit = used + WINDOW_BYTES_MIN;
      return { type: 'credit', offset: credit };
    },
    get taken() {
      return taken;
    },
    get credit() {
      return credit;
    },
    get isEnded() {
      return ended;
    },
  };
}
