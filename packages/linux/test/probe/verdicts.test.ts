import { expect, it } from 'vitest';
import { reportOf } from '../../src/probe/probe-host.ts';
import type { CheckStatus, HostCheck } from '../../src/probe/report.ts';
import { verdictOf } from '../../src/probe/verdicts.ts';
import { debian13, oldKernel } from './hosts.ts';

const good = reportOf(debian13).checks;
const change = (...changes: [id: string, status: CheckStatus][]): HostCheck[] =>
  good.map((check) => {
    const changed = changes.find(([id]) => id === check.id);
    return changed === undefined ? check : { ...check, status: changed[1], found: 'changed' };
  });

it.each([
  ['a need is missing', [['fs.erofs-file', 'missing']], 'impossible'],
  ['a need is unknown', [['fs.erofs-file', 'unknown']], 'unknown'],
  ['a need is degraded', [['kernel.version', 'degraded']], 'degraded'],
  ['one of two alternatives is missing', [['fs.overlay-descriptor', 'missing']], 'degraded'],
  [
    'both alternatives are missing',
    [
      ['fs.overlay-descriptor', 'missing'],
      ['fs.overlay-path', 'missing'],
    ],
    'impossible',
  ],
  ['a wish is missing', [['fs.fuse', 'missing']], 'degraded'],
  ['a wish is unknown', [['fs.fuse', 'unknown']], 'degraded'],
  ['something unrelated is missing', [['vm.kvm', 'missing']], 'possible'],
] as [string, [string, CheckStatus][], string][])('layers, when %s', (_name, changes, status) => {
  expect(verdictOf('layers', change(...changes)).status).toBe(status);
});

it('names what it cannot do without first, then what is missing, then what is weaker', () => {
  const checks = change(
    ['cgroup.cpu', 'degraded'],
    ['security.apparmor', 'missing'],
    ['fs.idmap', 'missing'],
    ['namespace.user', 'unknown'],
  );
  expect(verdictOf('container', checks)).toEqual({
    status: 'impossible',
    reasons: [
      { check: 'fs.idmap', status: 'missing', why: 'changed' },
      { check: 'namespace.user', status: 'unknown', why: 'changed' },
      { check: 'security.apparmor', status: 'missing', why: 'changed' },
      { check: 'cgroup.cpu', status: 'degraded', why: 'changed' },
    ],
  });
});

it('does not take a check that nobody made for a good one', () => {
  const verdict = verdictOf(
    'layers',
    good.filter((check) => check.id !== 'fs.erofs-file'),
  );
  expect(verdict).toMatchObject({ status: 'unknown', reasons: [{ check: 'fs.erofs-file' }] });
});

it('runs virtual machines without KVM, and not without QEMU', () => {
  expect(verdictOf('microvm', change(['vm.kvm', 'missing'])).status).toBe('degraded');
  expect(verdictOf('fullvm', change(['vm.qemu', 'missing'])).status).toBe('impossible');
});

it('refuses everything on a kernel older than 6.12', () => {
  for (const verdict of Object.values(reportOf(oldKernel).verdicts)) {
    expect(verdict.reasons[0]).toMatchObject({ check: 'kernel.version', status: 'missing' });
  }
});
