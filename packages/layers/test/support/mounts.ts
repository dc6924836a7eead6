import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, openSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { release } from 'node:os';
import { umount } from '@dsec/linux';
import { expect, it, onTestFinished } from 'vitest';
import type { MountForm } from '../../src/mount-plan.ts';

export const isRoot = process.getuid?.() === 0;
/** The mount namespace that was made for tests; tools/test.mjs sets it too. */
const RERUN = 'DSEC_TEST_PRIVATE_MOUNTS';

/** Whether this test file already runs in a mount namespace made for it. */
export const canMount = isRoot && process.env[RERUN] === readlinkSync('/proc/self/ns/mnt');

/**
 * For a test file that mounts: adds a test that runs the same file once more in a private mount
 * namespace, where `canMount` is true and every mount dies with the run.
 */
export function rerunInPrivateNamespace(file: string, project: 'integration' | 'chaos'): void {
  if (!isRoot) console.warn(`${file}: skipped, since mounting needs root`);
  it.runIf(isRoot && !canMount)(
    'runs in a mount namespace of its own (needs root)',
    { timeout: 900_000 },
    () => {
      const command = `${RERUN}=$(readlink /proc/self/ns/mnt) exec npx vitest run --project ${project} "$0"`;
      const args = ['-m', '--propagation', 'private', 'sh', '-c', command, file];
      const result = spawnSync('unshare', args, { encoding: 'utf8' });
      expect(result.stdout + result.stderr).toMatch(/Tests .*passed/);
      expect(result.stdout + result.stderr, 'every test of the inner run').not.toMatch(/failed/i);
      expect(result.status).toBe(0);
    },
  );
}

const [major = 0, minor = 0] = release().split('.').map(Number);

/** The forms that this kernel can run. */
export const MOUNT_FORMS: readonly MountForm[] =
  major > 6 || (major === 6 && minor >= 13) ? ['descriptor', 'path'] : ['path'];

/** The lines of this process's mount table. */
export function mountTable(): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n');
}

/**
 * Mounts a small ext4 at a directory until the test ends. It cannot be unmounted while a layer or overlay
 * on it lives, so a test that leaves one behind fails.
 */
export function mountScratchDisk(target: string, bytes: number, options = ''): void {
  const image = `${target}.img`;
  const fd = openSync(image, 'w');
  ftruncateSync(fd, bytes);
  closeSync(fd);
  run('mkfs.ext4', [
    '-q',
    '-O',
    '^has_journal',
    '-m',
    '0',
    ...options.split(' ').filter(Boolean),
    image,
  ]);
  run('mount', ['-o', 'loop', image, target]);
  onTestFinished(() => {
    umount(target);
    rmSync(image);
  });
}

function run(command: string, args: readonly string[]): void {
  const result = spawnSync(command, args, { encoding: 'utf8' });
  if (result.status !== 0) throw new Error(`${command}: ${result.stderr}`);
}
