import { describe, test } from 'vitest';
import { backendConformance, NETWORK_CASES } from '../src/conformance/conformance.ts';
import { openSimHarness } from './sim-harness.ts';

const withoutNetwork = Object.fromEntries(
  NETWORK_CASES.map((name) => [name, 'the simulated backend has no network']),
);
const isLong = process.env.DSEC_TEST_LONG === '1';

describe('the simulated backend', () => {
  for (const { name, skip, run } of backendConformance(() => openSimHarness(), {
    isLong,
    skip: withoutNetwork,
  })) {
    test(name, { timeout: isLong ? 300_000 : 30_000 }, async (context) => {
      context.skip(skip !== undefined, skip);
      await run();
    });
  }
});
