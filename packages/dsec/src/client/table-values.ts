/** What is shown of records. */
import type { Sandbox as SandboxInfo } from '@dsec/protocol';
import { formatDuration } from '@dsec/std';

/** A point in time as people read it, to the second. */
export function showTime(ms: number | undefined): string {
  return ms === undefined ? '-' : new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
}

/** Time since then. */
export function showAge(sinceMs: number, nowMs = Date.now()): string {
  return formatDuration(Math.max(0, nowMs - sinceMs));
}

/** What a sandbox is made of, in a word. */
export function showOrigin({ spec, layers }: SandboxInfo): string {
  if (spec.environment !== undefined) return spec.environment;
  const [first, ...more] = spec.layers ?? layers.map(({ ref, layerId }) => ref ?? layerId);
  return more.length === 0 ? (first ?? '-') : `${first} +${more.length}`;
}

/** `running`, or `failed (oom)`. */
export function showState({ state, endReason }: Pick<SandboxInfo, 'state' | 'endReason'>): string {
  return endReason === undefined || endReason === 'stopped' ? state : `${state} (${endReason})`;
}

const US_PER_MS = 1000;

/** Its record for programs: times to the microsecond, as no clock here is better. */
export function sandboxJson(info: SandboxInfo): SandboxInfo {
  const timings = Object.entries(info.timings).map(([name, ms]) => [
    name,
    typeof ms === 'number' ? Math.round(ms * US_PER_MS) / US_PER_MS : ms,
  ]);
  return { ...info, timings: Object.fromEntries(timings) };
}
