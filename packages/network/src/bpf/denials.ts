import { openRingBuffer } from '@dsec/linux';
import { type DenialEvent, decodeEvent, EVENT_BYTES } from './layout.ts';
import type { LoadedObjects } from './objects.ts';
import { mapOf } from './tables.ts';

/** Is called for each denial, in their order, from a timer: it must not throw. */
export type DenialListener = (event: DenialEvent) => void;

export interface DenialReader {
  /** Returns what ends it. */
  onDenied(listener: DenialListener): () => void;
  /** Gives listeners what waits, now instead of at the next turn of the timer. */
  poll(): void;
  close(): void;
}

const POLL_MS = 50;
/** So that a flood of denials does not hold up the rest of the process. */
const EVENTS_AT_ONCE = 2_048;

/** Reads the ring of denials as long as somebody listens. */
export function createDenialReader(objects: LoadedObjects): DenialReader {
  const { fd, entriesMax } = mapOf(objects, 'events');
  const ring = openRingBuffer(fd, entriesMax);
  const listeners = new Set<DenialListener>();
  let timer: NodeJS.Timeout | undefined;

  function poll(): void {
    ring.read((record) => {
      if (record.length < EVENT_BYTES) return;
      const event = decodeEvent(record);
      for (const listener of listeners) listener(event);
    }, EVENTS_AT_ONCE);
  }

  function stopTimer(): void {
    clearInterval(timer);
    timer = undefined;
  }

  function onDenied(listener: DenialListener): () => void {
    listeners.add(listener);
    timer ??= setInterval(poll, POLL_MS).unref();
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) stopTimer();
    };
  }

  function close(): void {
    stopTimer();
    listeners.clear();
    ring.close();
  }
  return { onDenied, poll, close };
}
