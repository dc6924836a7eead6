import { type ConformanceTest, runOnBench } from './bench.ts';
import { commandCases } from './cases-commands.ts';
import { fileCases } from './cases-files.ts';
import { lifecycleCases } from './cases-lifecycle.ts';
import { networkCases } from './cases-network.ts';
import { policyCases } from './cases-policy.ts';
import { recoveryCases } from './cases-recovery.ts';
import { streamCases } from './cases-streams.ts';
import type { BackendFactory, ConformanceCase, ConformanceOptions } from './harness.ts';

const CASES: Readonly<Record<string, ConformanceTest>> = {
  ...lifecycleCases,
  ...commandCases,
  ...streamCases,
  ...fileCases,
  ...recoveryCases,
  ...networkCases,
  ...policyCases,
};

const PATIENCE_MS = 20_000;

/**
 * What every backend must do, as named cases (cf. containerd's test suites for snapshotters). Each opens a
 * backend of its own, and fails when anything is left of it at the end.
 */
export function backendConformance(
  factory: BackendFactory,
  options: ConformanceOptions = {},
): readonly ConformanceCase[] {
  const { seed = 1, isLong = false, patienceMs = PATIENCE_MS, skip = {} } = options;
  return Object.entries(CASES).map(([name, test]) => ({
    name,
    skip: skip[name],
    run: () => runOnBench(factory, { seed, isLong, patienceMs }, test),
  }));
}

export { BEHAVIOUR, behaviourTable } from './behaviour.ts';
export { NETWORK_CASES } from './cases-network.ts';
export type {
  BackendFactory,
  BackendHarness,
  ConformanceCase,
  ConformanceCommands,
  ConformanceOptions,
} from './harness.ts';
