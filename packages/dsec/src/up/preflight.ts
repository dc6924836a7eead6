import { type HostReport, probeHost } from '@dsec/linux';
import { DsecError } from '@dsec/std';
import { makeProbeLayer } from '../probe-layer.ts';

/**
 * Whether this machine can run containers, by what the host probe found. Otherwise `unsupported` (or
 * `permission-denied` when it is only that we are not root), after a line for everything that is missing.
 */
export async function requireContainers(
  stateDirectory: string,
  tell: (line: string) => void,
): Promise<void> {
  const report = await probeHost({ stateDirectory, erofsImage: makeProbeLayer() });
  refuseWithout(report, tell);
}

/** The decision alone. */
export function refuseWithout(report: HostReport, tell: (line: string) => void): void {
  const { status, reasons } = report.verdicts.container;
  if (status !== 'impossible') return;
  const missing = reasons.filter((reason) => reason.status === 'missing');
  const isOnlyRoot = report.host.uid !== 0;
  const checks = new Map(report.checks.map((check) => [check.id, check]));
  for (const { check, why } of missing) {
    const remedy = checks.get(check)?.remedy ?? '';
    tell(`  missing ${check}: ${why}${remedy === '' ? '' : `; ${remedy}`}`);
  }
  const others =
    'dsec doctor says more; dsec up --backend sim needs none of it, and runs nothing real';
  if (isOnlyRoot && !missing.some(({ check }) => check === 'kernel.version')) {
    throw new DsecError('permission-denied', `containers need root: sudo dsec up (${others})`);
  }
  throw new DsecError('unsupported', `this machine cannot run containers as it is (${others})`);
}
