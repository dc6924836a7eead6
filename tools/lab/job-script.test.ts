import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { commandScript, localReport, suiteScript } from './job-script.mjs';

const run = (script: string) =>
  spawnSync('/bin/sh', ['-c', script], { encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } });

it('hands over every argument as it is', () => {
  const awkward = ['', 'two words', "it's", '$HOME `id` "x" \\', '*', '-n', 'new\nline', 'ü'];
  const { stdout } = run(commandScript(['printf', '[%s]', ...awkward], {}));
  expect(stdout).toBe(awkward.map((word) => `[${word}]`).join(''));
});

it('passes on what the environment says of DSec and colours, and nothing else', () => {
  const env = {
    DSEC_TEST_LONG: "1' x",
    CI: 'true',
    NO_COLOR: '1',
    HOME: '/secret',
    TOKEN: 'secret',
    DSEC_LAB: '0',
  };
  const lines = run(commandScript(['env'], env))
    .stdout.split('\n')
    .sort();
  expect(lines).toEqual(
    expect.arrayContaining(['CI=true', 'DSEC_LAB=1', "DSEC_TEST_LONG=1' x", 'NO_COLOR=1']),
  );
  expect(lines.join()).not.toContain('secret');
});

it('ends with the exit code of the command', () => {
  expect(run(commandScript(['sh', '-c', 'exit 7'], {})).status).toBe(7);
});

it('asks for events only where somebody listens', () => {
  const reporter = 'vitest-reporter.mjs';
  expect(suiteScript({ filters: ['layers'], withEvents: true }, {})).toContain(reporter);
  expect(suiteScript({ filters: [], withEvents: false }, {})).not.toContain(reporter);
});

it("turns the guest's paths in a report into ours", () => {
  const report = {
    success: true,
    testResults: [{ name: '/repo/tests/a.ts' }, { name: '/repository/b' }],
  };
  expect(JSON.parse(localReport(JSON.stringify(report), '/repo', '/here'))).toEqual({
    success: true,
    testResults: [{ name: '/here/tests/a.ts' }, { name: '/repository/b' }],
  });
});
