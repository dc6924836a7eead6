import { describe, test } from 'vitest';
import { backendConformance } from '../src/conformance/conformance.ts';
import { openSimHarness } from './sim-harness.ts';

const isLong = process.env.DSEC_TEST_LONG === '1';

describe('the simulated backend', () => {
  for (const { name, skip, run } of backendConformance(() => openSimHarness(), { isLong })) {
    test(name, { timeout: isLong ? 300_000 : 30_000 }, async (context) => {
      context.skip(skip !== undefined, skip);
      await run();
    });
  }
});
