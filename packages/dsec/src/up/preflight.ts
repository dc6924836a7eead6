import { type HostReport, isNeeded, probeHost } from '@dsec/linux';
import { DsecError } from '@dsec/std';
import { makeProbeLayer } from '../probe-layer.ts';

/**
 * Sees to it that this machine can run containers, by what the host probe finds. Otherwise `unsupported`,
 * after a line for everything that is missing. `command`: what the user started.
 */
export async function requireContainers(
  stateDirectory: string,
  tell: (line: string) => void,
  command = 'dsec up',
): Promise<void> {
  const report = await probeHost({ stateDirectory, erofsImage: makeProbeLayer() });
  refuseWithout(report, tell, command);
}

const OTHERWISE =
  'dsec doctor says more; dsec up --backend sim needs none of it, and runs nothing real';

/** The decision alone. What the probe could not look at is left to the edge, which tries it. */
export function refuseWithout(
  report: HostReport,
  tell: (line: string) => void,
  command = 'dsec up',
): void {
  const { status, reasons } = report.verdicts.container;
  const isRoot = report.host.uid === 0;
  if (isRoot && status !== 'impossible') return;
  const checks = new Map(report.checks.map((check) => [check.id, check]));
  const missing = reasons.filter(
    ({ check, status: state }) => state === 'missing' && isNeeded('container', check),
  );
  for (const { check, why } of missing) {
    const remedy = checks.get(check)?.remedy ?? '';
    tell(`  missing ${check}: ${why}${remedy === '' ? '' : `; ${remedy}`}`);
  }
  const others = missing.filter(({ check }) => check !== 'privilege.root');
  if (isRoot || others.length > 0) {
    throw new DsecError(
      'unsupported',
      `this machine cannot run containers as it is (${OTHERWISE})`,
    );
  }
  throw new DsecError('unsupported', `containers need root: sudo ${command} (${OTHERWISE})`);
}
