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
}

type Reader = (bytes: Uint8Array | undefined) => void;

interface Pipe {
  readonly waiting: Uint8Array[];
  readonly readers: Reader[];
  /** Came from the host, went to readers, was acknowledged, may come. */
  taken: number;
  used: number;
  acknowledged: number;
  credit: number;
  ended: boolean;
  closed: boolean;
}

/** `isOpen` false: at its end from the start. `onAnswer` says that something is owed. */
export function createInlet(isOpen: boolean, onAnswer: () => void): Inlet {
  const pipe: Pipe = {
    waiting: [],
    readers: [],
    taken: 0,
    used: 0,
    acknowledged: 0,
    credit: isOpen ? WINDOW_BYTES_MIN : 0,
    ended: !isOpen,
    closed: false,
  };
  const settle = () => {
    serve(pipe);
    if (owesAck(pipe) || owesCredit(pipe)) onAnswer();
  };
  return {
    take(offset, bytes, end) {
      // A host that starts anew cannot know whether its last word arrived.
      if (pipe.ended && end && bytes.byteLength === 0 && offset === pipe.taken) return;
      if (pipe.ended || offset !== pipe.taken || pipe.taken + bytes.byteLength > pipe.credit) {
        throw new DsecError('protocol', `input of ${bytes.byteLength} bytes at ${offset}`);
      }
      pipe.taken += bytes.byteLength;
      pipe.ended = end;
      if (bytes.byteLength > 0) pipe.waiting.push(bytes);
      settle();
    },
    async read(signal) {
      signal?.throwIfAborted();
      const next = readNext(pipe, signal);
      settle();
      return next;
    },
    close() {
      pipe.closed = true;
      settle();
    },
    answer: () => takeAnswer(pipe),
    get taken() {
      return pipe.taken;
    },
    get credit() {
      return pipe.credit;
    },
  };
}

function owesAck({ taken, acknowledged, ended }: Pipe): boolean {
  const bytes = taken - acknowledged;
  return bytes >= WINDOW_BYTES_MIN / 2 || (ended && bytes > 0);
}

function owesCredit({ used, credit, ended }: Pipe): boolean {
  return !ended && used + WINDOW_BYTES_MIN - credit >= WINDOW_BYTES_MIN / 2;
}

function takeAnswer(pipe: Pipe): InletAnswer | undefined {
  if (owesAck(pipe)) {
    pipe.acknowledged = pipe.taken;
    return { type: 'ack', offset: pipe.taken };
  }
  if (!owesCredit(pipe)) return undefined;
  pipe.credit = pipe.used + WINDOW_BYTES_MIN;
  return { type: 'credit', offset: pipe.credit };
}

function serve(pipe: Pipe): void {
  const { waiting, readers } = pipe;
  while (readers.length > 0 && (waiting.length > 0 || pipe.ended)) {
    const bytes = waiting.shift();
    pipe.used += bytes?.byteLength ?? 0;
    readers.shift()?.(bytes);
  }
  if (!pipe.closed) return;
  pipe.used = pipe.taken;
  waiting.length = 0;
}

function readNext(pipe: Pipe, signal: AbortSignal | undefined): Promise<Uint8Array | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      pipe.readers.splice(pipe.readers.indexOf(reader), 1);
      reject(signal?.reason);
    };
    const reader: Reader = (bytes) => {
      signal?.removeEventListener('abort', onAbort);
      resolve(bytes);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    pipe.readers.push(reader);
  });
}
