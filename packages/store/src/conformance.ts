import type { ConformanceCase } from './conformance-harness.ts';
import { keyCases } from './conformance-keys.ts';
import { logCases } from './conformance-logs.ts';
import { queueCases } from './conformance-queues.ts';
import { watchCases } from './conformance-watches.ts';

/**
 * What every driver of the store must do, as named cases. A driver's test opens a fresh, empty
 * store for each and runs it; a case rejects when the driver breaks the seam (cf. containerd's test
 * suites for snapshotters).
 */
export const storeConformance: readonly ConformanceCase[] = [
  ...keyCases,
  ...watchCases,
  ...logCases,
  ...queueCases,
];

export type { ConformanceCase, StoreHarness } from './conformance-harness.ts';
