import { assert, DsecError } from '@dsec/std';
import { abortError } from './deadline.ts';

/**
 * Flow control of one channel of one stream, in absolute offsets: the receiver grants an offset up
 * to which the sender may send. Both sides are plain state; the frames that carry bytes and grants
 * are the caller's.
 */
export interface SendCredit {
  /** The next byte to be sent. */
  readonly offset: number;
  /**
   * Waits until something may be sent and takes it: returns how many of `bytes` (more than 0) may
   * go now, from `offset` on. One taker at a time. Rejects with the signal's error, or with that of
   * `fail`.
   */
  take(bytes: number, signal?: AbortSignal): Promise<number>;
  /** The other side's grant. One that goes back is a violation: throws `protocol`. */
  grant(upTo: number): void;
  fail(error: DsecError): void;
}

export function createSendCredit(offset: number, upTo: number): SendCredit {
  let next = offset;
  let granted = upTo;
  let failure: DsecError | undefined;
  let wake: (() => void) | undefined;

  const granting = (signal: AbortSignal | undefined) =>
    new Promise<void>((resolve) => {
      const settle = () => {
        signal?.removeEventListener('abort', settle);
        wake = undefined;
        resolve();
      };
      signal?.addEventListener('abort', settle, { once: true });
      wake = settle;
    });

  return {
    get offset() {
      return next;
    },
    async take(bytes, signal) {
      assert(bytes > 0, 'credit is taken for bytes that are there');
      assert(wake === undefined, 'credit has one taker at a time');
      while (next >= granted) {
        if (failure !== undefined) throw failure;
        if (signal?.aborted) throw abortError(signal);
        await granting(signal);
      }
      if (failure !== undefined) throw failure;
      const taken = Math.min(bytes, granted - next);
      next += taken;
      return taken;
    },
    grant(to) {
      if (to < granted)
        throw new DsecError('protocol', `credit went back from ${granted} to ${to}`);
      granted = to;
      wake?.();
    },
    fail(error) {
      failure ??= error;
      wake?.();
    },
  };
}

export interface ReceiveCredit {
  /** Checks the place of bytes that arrive. A gap, an overlap or more than was granted: throws `protocol`. */
  receive(offset: number, bytes: number): void;
  /** Says that bytes have been dealt with. Returns a new grant when it is time to send one. */
  release(bytes: number): number | undefined;
  /** The next byte expected. */
  readonly offset: number;
}

/**
 * `windowBytes` is the most that may be under way or undealt with; a grant is worth sending at half
 * of it.
 */
export function createReceiveCredit(offset: number, windowBytes: number): ReceiveCredit {
  let next = offset;
  let released = offset;
  let granted = offset + windowBytes;
  return {
    get offset() {
      return next;
    },
    receive(at, bytes) {
      if (at !== next) throw new DsecError('protocol', `bytes at ${at} where ${next} was expected`);
      if (at + bytes > granted) {
        throw new DsecError(
          'protocol',
          `bytes up to ${at + bytes} beyond the credit of ${granted}`,
        );
      }
      next += bytes;
    },
    release(bytes) {
      released += bytes;
      assert(released <= next, 'only received bytes are released');
      if (granted - released > windowBytes / 2) return undefined;
      granted = released + windowBytes;
      return granted;
    },
  };
}
