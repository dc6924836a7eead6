import { describe, it } from 'vitest';
import { createMemoryStore } from '../src/index.ts';
import { BOUNDS, runCase, storeConformance } from './harness.ts';

describe('memory store', () => {
  for (const { name, run } of storeConformance) {
    it(name, () => runCase(run, async (clock) => createMemoryStore({ clock, ...BOUNDS })));
  }
});
