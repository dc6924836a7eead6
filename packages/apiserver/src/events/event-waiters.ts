import type { Event } from '@dsec/protocol';

export interface EventFilter {
  /** Only events of it, and those that are of none. */
  readonly project: string;
  readonly wants: (event: Event) => boolean;
}

export interface Waited {
  /** Where to read on: the event, or behind all that were not wanted. */
  readonly next: number;
  readonly isQuiet: boolean;
}

/** Those who wait for an event. Each is looked at once for each event of its project. */
export interface EventWaiters {
  /** Wakes those who want it. */
  offer(event: Event, index: number): void;
  /** The next event that is wanted, or that there was none for `quietMs` or until the signal aborted. */
  wait(filter: EventFilter, signal: AbortSignal, quietMs: number): Promise<Waited>;
  /** Ends every wait. */
  close(): void;
}

interface Waiter {
  readonly filter: EventFilter;
  readonly untilTick: number;
  settle(index: number | undefined): void;
}

/** One timer for all of them. */
const TICK_MS = 500;

/** `end` is the index of the event that comes next. */
export function createEventWaiters(end: () => number): EventWaiters {
  /** By project. */
  const waiting = new Map<string, Set<Waiter>>();
  let tick = 0;
  let timer: NodeJS.Timeout | undefined;

  const settleEach = (
    set: Iterable<Waiter>,
    index: number | undefined,
    which: (w: Waiter) => boolean,
  ) => {
    for (const waiter of [...set]) if (which(waiter)) waiter.settle(index);
  };
  const onTick = () => {
    tick += 1;
    for (const set of waiting.values()) {
      settleEach(set, undefined, ({ untilTick }) => untilTick <= tick);
    }
    if (waiting.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  return {
    offer(event, index) {
      const isWanted = ({ filter }: Waiter) => filter.wants(event);
      const sets = event.type === 'lost' ? waiting.values() : [waiting.get(event.project) ?? []];
      for (const set of sets) settleEach(set, index, isWanted);
    },
    wait: (filter, signal, quietMs) =>
      new Promise((resolve) => {
        const { project } = filter;
        const set = waiting.get(project) ?? new Set<Waiter>();
        waiting.set(project, set);
        const settle = (index: number | undefined) => {
          set.delete(waiter);
          if (set.size === 0 && waiting.get(project) === set) waiting.delete(project);
          signal.removeEventListener('abort', onAbort);
          // Now, not when it is awaited: what comes in between must not be passed over.
          resolve({ next: index ?? end(), isQuiet: index === undefined });
        };
        const onAbort = () => settle(undefined);
        const untilTick = tick + Math.max(1, Math.round(quietMs / TICK_MS));
        const waiter: Waiter = { filter, settle, untilTick };
        set.add(waiter);
        timer ??= setInterval(onTick, TICK_MS).unref();
        signal.addEventListener('abort', onAbort, { once: true });
        if (signal.aborted) onAbort();
      }),
    close() {
      clearInterval(timer);
      for (const set of waiting.values()) settleEach(set, undefined, () => true);
    },
  };
}
