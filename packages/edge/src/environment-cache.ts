import type { ResolvedEnvironment } from '@dsec/layers';
import { type Clock, SECOND_MS } from '@dsec/std';
import type { EnvironmentSource } from './lifecycle/creation.ts';

/** For so long a ref that has moved may still mean what it did. */
const KEPT_MS = SECOND_MS;
const ENTRIES_MAX = 1024;

interface Kept {
  readonly untilMs: number;
  readonly resolved: Promise<ResolvedEnvironment>;
}

/**
 * Keeps what refs were resolved to for a second: many sandboxes of one environment, made at a time, read the
 * layer store once. Named environments are read each time, and failures are not kept.
 */
export function cacheEnvironments(source: EnvironmentSource, clock: Clock): EnvironmentSource {
  const kept = new Map<string, Kept>();
  return {
    layersOf: (name) => source.layersOf(name),
    resolve(refs) {
      const key = JSON.stringify(refs);
      const nowMs = clock.monotonicMs();
      const known = kept.get(key);
      if (known !== undefined && nowMs < known.untilMs) return known.resolved;
      const entry = { untilMs: nowMs + KEPT_MS, resolved: source.resolve(refs) };
      kept.delete(key);
      kept.set(key, entry);
      const [oldest] = kept.keys();
      if (kept.size > ENTRIES_MAX && oldest !== undefined) kept.delete(oldest);
      entry.resolved.catch(() => {
        if (kept.get(key) === entry) kept.delete(key);
      });
      return entry.resolved;
    },
  };
}
