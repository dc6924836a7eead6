import { type Clock, DsecError } from '@dsec/std';
import { storeClosed } from './refusals.ts';

/**
 * Those who wait for the store to change. A waiter notes `ticks`, looks at the store, and if it
 * finds nothing waits with the ticks it noted: a change after the look ends the wait at once, so no
 * wake-up is lost. Then it looks again.
 */
export interface Waiters {
  /** Grows with every change that somebody could wait for. */
  readonly ticks: number;
  /**
   * Resolves when the topic changes, after `timeoutMs`, or when the signal aborts; `unavailable`
   * once closed.
   */
  wait(topic: string, wait: Wait): Promise<void>;
  wake(topic: string): void;
  wakeAll(): void;
  close(): void;
}

export interface Wait {
  readonly ticks: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

export interface WaitersOptions {
  readonly clock: Clock;
  readonly waitersMax: number;
  /** Changes made by other processes: asked every `everyMs` while somebody waits; true wakes everybody. */
  readonly poll?: { readonly everyMs: number; changed(): boolean };
}

/**
 * A waiter looks again after this long even if nothing was said; it also keeps timers in their
 * legal range.
 */
const LOOK_AGAIN_MS = 60_000;

export function createWaiters(options: WaitersOptions): Waiters {
  const { clock, waitersMax, poll } = options;
  const waiting = new Map<string, Set<AbortController>>();
  let count = 0;
  let ticks = 0;
  let closed = false;
  let polling = false;

  const wake = (topic: string) => {
    ticks += 1;
    for (const waiter of waiting.get(topic) ?? []) waiter.abort();
  };
  const wakeAll = () => {
    ticks += 1;
    for (const waiters of waiting.values()) for (const waiter of waiters) waiter.abort();
  };
  const enter = (topic: string, waiter: AbortController) => {
    const waiters = waiting.get(topic);
    if (waiters === undefined) waiting.set(topic, new Set([waiter]));
    else waiters.add(waiter);
    count += 1;
  };
  const leave = (topic: string, waiter: AbortController) => {
    const waiters = waiting.get(topic);
    waiters?.delete(waiter);
    if (waiters?.size === 0) waiting.delete(topic);
    count -= 1;
  };
  const pollWhileWaiting = async () => {
    if (poll === undefined || polling) return;
    polling = true;
    while (count > 0 && !closed) {
      await clock.sleep(poll.everyMs);
      if (!closed && changed(poll)) wakeAll();
    }
    polling = false;
  };

  return {
    get ticks() {
      return ticks;
    },
    async wait(topic, { ticks: seen, timeoutMs, signal }) {
      if (closed) throw storeClosed();
      if (signal?.aborted || ticks !== seen) return;
      if (count >= waitersMax) {
        throw new DsecError('overloaded', `the store has ${waitersMax} waiters`);
      }
      const waiter = new AbortController();
      const onAbort = () => waiter.abort();
      signal?.addEventListener('abort', onAbort, { once: true });
      enter(topic, waiter);
      void pollWhileWaiting();
      await clock.sleep(Math.min(timeoutMs, LOOK_AGAIN_MS), waiter.signal).catch(() => {});
      leave(topic, waiter);
      signal?.removeEventListener('abort', onAbort);
      if (closed) throw storeClosed();
    },
    wake,
    wakeAll,
    close() {
      closed = true;
      wakeAll();
    },
  };
}

/** A poll that fails counts as a change: those who wait look again and meet the error themselves. */
function changed(poll: { changed(): boolean }): boolean {
  try {
    return poll.changed();
  } catch {
    return true;
  }
}

/**
 * Looks until something is found, `waitMs` have passed or the signal aborts; returns what the last
 * look found. `dueInMs` says when a look may find something without any change, because time has
 * come.
 */
export async function lookAndWait<T>(
  waiters: Waiters,
  clock: Clock,
  how: {
    readonly topic: string;
    readonly waitMs: number;
    readonly signal: AbortSignal | undefined;
  },
  look: () => Promise<{ readonly found: readonly T[]; readonly dueInMs: number }>,
): Promise<readonly T[]> {
  const deadlineMs = clock.monotonicMs() + how.waitMs;
  for (;;) {
    const ticks = waiters.ticks;
    const { found, dueInMs } = await look();
    const leftMs = deadlineMs - clock.monotonicMs();
    if (found.length > 0 || leftMs <= 0 || how.signal?.aborted) return found;
    await waiters.wait(how.topic, {
      ticks,
      timeoutMs: Math.min(leftMs, Math.max(dueInMs, 1)),
      signal: how.signal,
    });
  }
}
