import { type Clock, systemClock } from '@dsec/std';
import { createRecentMap } from '../recent-map.ts';
import type { NameRule } from '../rules/compiled.ts';

/** What a sandbox may say in names below a wildcard: each name that is looked up is seen outside. */
export interface NameGuardLimits {
  /** Labels in place of the star. */
  readonly labelsMax: number;
  readonly labelBytesMax: number;
  /** Shannon's measure of the labels in place of the star, all together. */
  readonly bitsMax: number;
  /** Different names of one sandbox in a window. */
  readonly distinctMax: number;
  readonly windowMs: number;
  readonly sandboxesMax: number;
}

export const NAME_GUARD_LIMITS: NameGuardLimits = {
  labelsMax: 3,
  labelBytesMax: 40,
  bitsMax: 128,
  distinctMax: 64,
  windowMs: 60_000,
  sandboxesMax: 16_384,
};

export interface NameGuard {
  /** Whether a sandbox may have this name, which `rule` opens, looked up. Exact names always pass. */
  admits(sandbox: string, name: string, rule: NameRule): boolean;
}

interface Window {
  startMs: number;
  readonly names: Set<string>;
}

/** Bounds what leaves a node in names, by their form and by how many different ones there are. */
export function createNameGuard(
  limits: NameGuardLimits = NAME_GUARD_LIMITS,
  clock: Clock = systemClock,
): NameGuard {
  const windows = createRecentMap<string, Window>(limits.sandboxesMax);
  return {
    admits(sandbox, name, rule) {
      if (!rule.pattern.startsWith('*.')) return true;
      if (!isModest(name.slice(0, 1 - rule.pattern.length), limits)) return false;
      const nowMs = clock.monotonicMs();
      let window = windows.get(sandbox);
      if (window === undefined || nowMs - window.startMs >= limits.windowMs) {
        window = { startMs: nowMs, names: new Set() };
        windows.set(sandbox, window);
      }
      if (window.names.has(name)) return true;
      if (window.names.size >= limits.distinctMax) return false;
      window.names.add(name);
      return true;
    },
  };
}

function isModest(below: string, limits: NameGuardLimits): boolean {
  const labels = below.split('.');
  if (labels.length > limits.labelsMax) return false;
  if (labels.some((label) => label.length > limits.labelBytesMax)) return false;
  return informationBits(below) <= limits.bitsMax;
}

/** Length times the entropy of single characters: an upper bound of what a text written in them can say. */
function informationBits(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits += count * Math.log2(text.length / count);
  return bits;
}
