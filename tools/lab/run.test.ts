import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** The command without QEMU on its PATH, so that nothing is downloaded or booted. */
const run = (...args: string[]) =>
  spawnSync(process.execPath, [join(import.meta.dirname, 'run.mjs'), ...args], {
    encoding: 'utf8',
    env: { PATH: '/nowhere' },
  });

it.each([
  ['nothing', []],
  ['an option that it does not have', ['--fast', '--', 'true']],
  ['a limit that is no number', ['--timeout', 'soon', '--', 'true']],
  ['too little memory', ['--memory', '1', '--', 'true']],
])('shows how to use it when asked for %s', (_, args) => {
  expect(run(...args)).toMatchObject({ status: 64, stdout: '' });
  expect(run(...args).stderr).toContain('node tools/lab/run.mjs [options] -- COMMAND');
});

it('helps', () => {
  const { status, stdout } = run('--help');
  expect(status).toBe(0);
  expect(stdout).toContain('--suite');
});

it('says why it cannot run, as a skip', () => {
  const { status, stderr } = run('--', 'true');
  expect(status).toBe(75);
  expect(stderr).toBe('lab: the lab needs qemu-system-x86_64 on PATH (package qemu-system-x86)\n');
});
