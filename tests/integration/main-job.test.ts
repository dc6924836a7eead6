import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
const MAIN_JOB = join(REPOSITORY, 'packages/dsec/dist/main-job.js');
const EROFS_UTILS = ['mkfs.erofs', 'fsck.erofs', 'dump.erofs', 'erofsfuse'];

/** Every place where a program of erofs-utils could be found. */
function installedErofsUtils(): string[] {
  const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  const paths = directories.flatMap((directory) =>
    EROFS_UTILS.map((name) => join(directory, name)),
  );
  return [...new Set(paths)].filter(existsSync);
}

describe.skipIf(process.getuid?.() !== 0)('the main job of npm start (needs root)', () => {
  const root = mkdtempSync(join(tmpdir(), 'dsec-main-job-'));
  const state = join(root, 'state');
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it('makes layers of this distribution and composes them, without erofs-utils', () => {
    // In a mount namespace of its own, whatever of erofs-utils is installed is hidden behind /dev/null.
    const hide = installedErofsUtils().map((path) => `mount --bind /dev/null '${path}'`);
    const script = [
      'set -e',
      ...hide,
      ...EROFS_UTILS.map((name) => `! ${name} --version 2>/dev/null`),
      'exec "$0" "$@"',
    ].join('\n');
    const argv = [process.execPath, MAIN_JOB, '--state', state];
    const { status, stdout, stderr } = spawnSync(
      'unshare',
      ['--mount', '--propagation=private', 'sh', '-c', script, ...argv],
      { encoding: 'utf8', timeout: 600_000 },
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/base\/example:1\.0\.0: \d+ entries/);
    expect(stdout).toContain('composed base/example:1.0.0 + workspace/spans:1.0.0');
    expect(stdout).toContain('written to the upper, not to a layer');
  }, 600_000);

  it('leaves neither mounts nor scratch directories', () => {
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(state);
    expect(readdirSync(state).sort()).toEqual(['cache', 'node', 'store']);
    expect(readdirSync(join(state, 'store', 'tmp'))).toEqual([]);
  });
});
