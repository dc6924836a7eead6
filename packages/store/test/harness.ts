import { setImmediate as nextTurn } from 'node:timers/promises';
import { createManualClock, type ManualClock } from '@dsec/std';
import { type ConformanceCase, storeConformance } from '../src/conformance.ts';
import type { Store } from '../src/index.ts';

/** Small bounds, so that the suite can reach them. */
export const BOUNDS = { tombstonesMax: 8, waitersMax: 16 };

/** Runs a conformance case on a store that counts a manual clock. */
export async function runCase(
  run: ConformanceCase['run'],
  open: (clock: ManualClock) => Promise<Store>,
): Promise<void> {
  const clock = createManualClock(1_800_000_000_000);
  const store = await open(clock);
  const advance = async (ms: number) => {
    for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    clock.advance(ms);
  };
  try {
    await run({ store, advance, ...BOUNDS });
  } finally {
    await store.close();
  }
}

export { storeConformance };
