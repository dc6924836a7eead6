import type { Clock } from '@dsec/std';
import type { Waiters } from './waiters.ts';

/** What the three parts of the memory store share. */
export interface MemoryContext {
  readonly clock: Clock;
  readonly waiters: Waiters;
  readonly revision: number;
  nextRevision(): number;
  nowMs(): number;
  assertOpen(): void;
}
