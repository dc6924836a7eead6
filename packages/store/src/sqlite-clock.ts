import type { Clock } from '@dsec/std';
import type { Sqlite } from './sqlite-database.ts';

/**
 * The clock of a store file, in whole milliseconds, the same for all processes of this boot:
 * monotonic time, which processes of one boot share, counted from a base kept in the file. A step
 * of the wall clock cannot expire or prolong anything. The first process of a new boot sets a new
 * base: the wall clock, but never before the newest write.
 */
export function createStoreClock(db: Sqlite, clock: Clock, bootId: string): () => number {
  interface Base {
    readonly boot_id: string;
    readonly base_monotonic_ms: number;
    readonly base_store_ms: number;
    readonly seen_ms: number;
  }
  const read = db.prepare<[], Base>(
    'SELECT boot_id, base_monotonic_ms, base_store_ms, seen_ms FROM store',
  );
  const save = db.prepare('UPDATE store SET boot_id = ?, base_monotonic_ms = ?, base_store_ms = ?');
  const base = db
    .transaction(() => {
      const kept = read.get();
      if (kept?.boot_id === bootId) return kept;
      const monotonicMs = Math.floor(clock.monotonicMs());
      const storeMs = Math.max(Math.floor(clock.wallMs()), kept?.seen_ms ?? 0);
      save.run(bootId, monotonicMs, storeMs);
      return { base_monotonic_ms: monotonicMs, base_store_ms: storeMs };
    })
    .immediate();
  return () => base.base_store_ms + Math.floor(clock.monotonicMs()) - base.base_monotonic_ms;
}
