import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, vi } from 'vitest';

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
const MAIN_JOB = join(REPOSITORY, 'packages/dsec/dist/main-job.js');
const PYTHON = join(REPOSITORY, '.venv/bin/python');
const EROFS_UTILS = ['mkfs.erofs', 'fsck.erofs', 'dump.erofs', 'erofsfuse'];
const SANDBOXES = 16;

/** Every place where a program of erofs-utils could be found. */
function installedErofsUtils(): string[] {
  const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  const paths = directories.flatMap((directory) =>
    EROFS_UTILS.map((name) => join(directory, name)),
  );
  return [...new Set(paths)].filter(existsSync);
}

/** Processes whose command line names the directory. */
function processesOf(directory: string): { readonly pid: number; readonly program: string }[] {
  return readdirSync('/proc').flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      const words = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0');
      if (!words.some((word) => word.includes(directory))) return [];
      return [{ pid: Number(entry), program: readlinkSync(`/proc/${entry}/exe`) }];
    } catch {
      return [];
    }
  });
}

const isRoot = process.getuid?.() === 0;

describe.skipIf(!isRoot || !existsSync(PYTHON))(
  'the main job of npm start (needs root, .venv)',
  () => {
    const root = mkdtempSync(join(tmpdir(), 'dsec-main-job-'));
    const state = join(root, 'state');
    afterAll(async () => {
      // The launcher outlives everything, as it should; asked to end, it takes its cgroups along.
      for (const { pid } of processesOf(state)) process.kill(pid, 'SIGTERM');
      await vi.waitFor(() => expect(processesOf(state)).toEqual([]), 20_000);
      rmSync(root, { recursive: true, force: true });
    });

    /** What it said the first and the second time; and the sandboxes that the launcher then still knows. */
    let parts: readonly string[] = [];

    it('starts DSec, makes layers of this distribution, and does a training job, without erofs-utils', () => {
      // In a mount namespace of its own, whatever of erofs-utils is installed is hidden behind /dev/null.
      const hide = installedErofsUtils().map((path) => `mount --bind /dev/null '${path}'`);
      const script = [
        'set -e',
        ...hide,
        ...EROFS_UTILS.map((name) => `! ${name} --version 2>/dev/null`),
        ...['"$0" "$@"', 'echo =====', '"$0" "$@"', 'echo =====', `ls '${state}/run/sb'`],
      ].join('\n');
      const options = ['--once', '--sandboxes', String(SANDBOXES), '--listen', '127.0.0.1:0'];
      const argv = [process.execPath, MAIN_JOB, '--state', state, ...options];
      const { status, stdout, stderr } = spawnSync(
        'unshare',
        ['--mount', '--propagation=private', 'sh', '-c', script, ...argv],
        { encoding: 'utf8', timeout: 600_000 },
      );
      expect({ status, stderr }).toEqual({
        status: 0,
        stderr: expect.stringContaining('16 of 16'),
      });
      parts = stdout.split('=====\n');
      const [first = ''] = parts;
      expect(first).toMatch(/base\/example:1\.0\.0: \d+ entries/);
      expect(first).toContain('installing packages');
      expect(first).toMatch(/with a rule .*, mirror\.dsec\.example: <a href/);
      expect(first).toMatch(/with a rule .*, example\.org: not reached/);
      expect(first).toMatch(/without a rule, mirror\.dsec\.example: not reached/);
      expect(first).toMatch(/^everything +2 +1\.00 +6 +0 +0$/m);
      expect(first).toMatch(/^edits-the-tests +2 +0\.00 +0 +0 +0$/m);
      for (const figure of ['allocated', 'ready', 'first command']) {
        expect(first).toMatch(
          new RegExp(`^${figure} +\\d+\\.\\d +\\d+\\.\\d +\\d+\\.\\d ms$`, 'm'),
        );
      }
    }, 600_000);

    it('does it again without making anything anew', () => {
      expect(parts[1]).not.toContain('installing packages');
      expect(parts[1]).toMatch(/^everything +2 +1\.00 +6 +0 +0$/m);
    });

    it('leaves neither sandboxes nor scratch directories, and of processes the launcher alone', () => {
      const entries = readdirSync(state, { withFileTypes: true });
      const scratch = entries.filter(
        (entry) => entry.isDirectory() && entry.name.startsWith('example-'),
      );
      expect(scratch.map(({ name }) => name)).toEqual([]);
      expect(readdirSync(join(state, 'store', 'tmp'))).toEqual([]);
      expect(parts[2]).toBe('');
      const programs = processesOf(state).map(({ program }) => program.replace(/.*\//, ''));
      expect(programs).toEqual(['dsec-launcher']);
    });
  },
);
