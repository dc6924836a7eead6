import { assert, type DsecError } from '@dsec/std';
import { abortError } from './deadline.ts';

/** What has arrived and is not taken yet. While it is full its source is paused, so its size is bounded. */
export interface Inbox<T> {
  push(item: T, bytes: number): void;
  /** Nothing more comes. What is inside can still be taken; then `take` throws the error, if there is one. */
  end(error?: DsecError): void;
  /** The oldest item, waiting for one; `undefined` after the end. One taker at a time. */
  take(signal?: AbortSignal): Promise<T | undefined>;
  readonly paused: boolean;
}

export interface InboxOptions {
  readonly itemsMax: number;
  readonly bytesMax: number;
  /** Called when a limit is reached. What the source has read already may still be pushed. */
  pause(): void;
  /** Called when half of what filled it has been taken. */
  resume(): void;
}

interface Taker<T> {
  resolve(item: T | undefined): void;
  reject(error: unknown): void;
}

export function createInbox<T>(options: InboxOptions): Inbox<T> {
  const { itemsMax, bytesMax } = options;
  let items: { readonly item: T; readonly bytes: number }[] = [];
  let taken = 0;
  let bytesInside = 0;
  let paused = false;
  let ended: { readonly error: DsecError | undefined } | undefined;
  let taker: Taker<T> | undefined;

  const next = (): T | undefined => {
    const entry = items[taken];
    if (entry === undefined) return undefined;
    taken += 1;
    if (taken === items.length || taken >= 1024) {
      items = items.slice(taken);
      taken = 0;
    }
    bytesInside -= entry.bytes;
    if (paused && items.length - taken <= itemsMax / 2 && bytesInside <= bytesMax / 2) {
      paused = false;
      options.resume();
    }
    return entry.item;
  };

  return {
    push(item, bytes) {
      if (ended !== undefined) return;
      if (taker !== undefined) {
        const { resolve } = taker;
        taker = undefined;
        resolve(item);
        return;
      }
      items.push({ item, bytes });
      bytesInside += bytes;
      if (!paused && (items.length - taken >= itemsMax || bytesInside >= bytesMax)) {
        paused = true;
        options.pause();
      }
    },
    end(error) {
      if (ended !== undefined) return;
      ended = { error };
      if (error === undefined) taker?.resolve(undefined);
      else taker?.reject(error);
      taker = undefined;
    },
    async take(signal) {
      assert(taker === undefined, 'an inbox has one taker at a time');
      const item = next();
      if (item !== undefined) return item;
      if (ended?.error !== undefined) throw ended.error;
      if (ended !== undefined) return undefined;
      if (signal?.aborted) throw abortError(signal);
      return waitForOne(signal, (waiting) => {
        taker = waiting;
      });
    },
    get paused() {
      return paused;
    },
  };
}

function waitForOne<T>(
  signal: AbortSignal | undefined,
  enter: (taker: Taker<T> | undefined) => void,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      enter(undefined);
      reject(abortError(signal));
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    enter({
      resolve(item) {
        signal?.removeEventListener('abort', onAbort);
        resolve(item);
      },
      reject(error) {
        signal?.removeEventListener('abort', onAbort);
        reject(error);
      },
    });
  });
}

/** The items of an inbox, or of anything that is taken from in the same way, as an iteration. */
export async function* takeAll<T>(take: () => Promise<T | undefined>): AsyncGenerator<T> {
  for (let item = await take(); item !== undefined; item = await take()) yield item;
}
