import { describe, expect, it } from 'vitest';
import { reportOf } from '../../src/probe/probe-host.ts';
import { REPORT_COLUMNS, renderHostReport } from '../../src/probe/render.ts';
import { debian13, HOSTS, hybrid, ordinaryUser } from './hosts.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;

describe.each(Object.entries(HOSTS))('%s', (_name, facts) => {
  const text = renderHostReport(reportOf(facts), { color: false });

  it('fits and holds no control character', () => {
    for (const line of text.split('\n'))
      expect([...line].length).toBeLessThanOrEqual(REPORT_COLUMNS);
    expect(text).not.toMatch(CONTROL);
    expect(text.endsWith('\n')).toBe(true);
  });

  it('names every check and every verdict', () => {
    for (const check of reportOf(facts).checks) expect(text).toContain(check.id);
    expect(
      text.split('what this host can do')[1]?.match(/layers|container|microvm|fullvm/g),
    ).toEqual(['layers', 'container', 'microvm', 'fullvm']);
  });
});

it('shows a check as mark, name and finding, with what to do below', () => {
  const text = renderHostReport(reportOf(hybrid), { color: false });
  expect(text).toContain('  ✓ cgroup.kill                          cgroup.kill\n');
  expect(text).toContain(
    '  ◐ limit.kernel.pid_max                 32768, less than 1048576\n' +
      '      for: processes of all sandboxes together: they get 80 % of what the host can have\n' +
      '      fix: `sysctl -w kernel.pid_max=1048576`, and in /etc/sysctl.d/ to keep it\n',
  );
  expect(text).toMatch(/ {2}✗ vm\.kvm /);
});

it('tells an ordinary user once to be root, and not under every check', () => {
  const text = renderHostReport(reportOf(ordinaryUser), { color: false });
  expect(text.match(/sudo dsec doctor/g)).toHaveLength(1);
});

it('has only remedies to show where there is something to remedy', () => {
  expect(renderHostReport(reportOf(debian13), { color: false })).not.toContain('fix:');
});

it('colours marks where asked', () => {
  const text = renderHostReport(reportOf(hybrid), { color: true });
  expect(text).toContain('\u001b[32m✓\u001b[0m');
  expect(text).toContain('\u001b[31m✗\u001b[0m');
});

it('lets nothing that a host says control the terminal or break the lines', () => {
  const hostile = {
    ...debian13,
    kernelRelease: `6.16\u001b]0;owned\u0007\n${'x'.repeat(300)}`,
    qemu: { path: '/q', versionLine: 'no \u001b[2J version' },
  };
  const text = renderHostReport(reportOf(hostile), { color: false });
  expect(text).not.toMatch(CONTROL);
  for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(REPORT_COLUMNS);
});
