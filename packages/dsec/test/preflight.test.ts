import type { HostCheck, HostReport, VerdictStatus } from '@dsec/linux';
import { describe, expect, it } from 'vitest';
import { refuseWithout } from '../src/up/preflight.ts';

const unsupported = expect.objectContaining({ code: 'unsupported' });

function check(id: string, found: string, remedy: string): HostCheck {
  return { id, group: 'kernel', status: 'missing', found, neededFor: 'x', remedy } as HostCheck;
}

function reportOf(uid: number, status: VerdictStatus, checks: readonly HostCheck[]): HostReport {
  const reasons = checks.map(({ id, status: state, found }) => ({
    ...{ check: id, status: state, why: found },
  }));
  const verdict = { status, reasons };
  const host = { os: '', kernel: '', architecture: '', cpus: 1, memoryBytes: 1, uid };
  return {
    ...{ version: 1, takenAt: '', host, checks },
    verdicts: { layers: verdict, container: verdict, microvm: verdict, fullvm: verdict },
  };
}

function refusal(report: HostReport) {
  const lines: string[] = [];
  let thrown: unknown;
  try {
    refuseWithout(report, (line) => lines.push(line));
  } catch (error) {
    thrown = error;
  }
  return { lines, thrown };
}

const ROOT = check('privilege.root', 'user 1000', 'run it with sudo');
const KERNEL = check('kernel.version', 'Linux 5.10', 'install linux-image-cloud-amd64');

describe('refuseWithout', () => {
  it.each(['possible', 'degraded', 'unknown'] as const)('lets root try when it is %s', (status) => {
    expect(refusal(reportOf(0, status, []))).toEqual({ lines: [], thrown: undefined });
  });

  it('says what an old kernel lacks, and how to get it', () => {
    const { lines, thrown } = refusal(reportOf(0, 'impossible', [KERNEL]));
    expect(lines).toEqual([
      '  missing kernel.version: Linux 5.10; install linux-image-cloud-amd64',
    ]);
    expect(thrown).toEqual(unsupported);
    expect(String(thrown)).toContain('--backend sim');
  });

  it('sends an ordinary user to sudo, unless that would not help', () => {
    // The probe of an ordinary user cannot look at much.
    const alone = refusal(reportOf(1000, 'unknown', [ROOT]));
    expect(alone.lines).toEqual(['  missing privilege.root: user 1000; run it with sudo']);
    expect(String(alone.thrown)).toContain('sudo dsec up');
    const both = refusal(reportOf(1000, 'impossible', [ROOT, KERNEL]));
    expect(both.lines).toHaveLength(2);
    expect(String(both.thrown)).not.toContain('sudo');
  });
});
