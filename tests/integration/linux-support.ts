import { mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { release, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';

/** A directory that goes away with the test file. */
export function scratchDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'dsec-linux-'));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

export const isRoot = process.getuid?.() === 0;

/** A program of an npm package, to be run by Node itself: npx, and the package, are not everywhere. */
export function programOf(packageName: string, path: string): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve(`${packageName}/package.json`);
    return join(dirname(manifest), path);
  } catch {
    return undefined;
  }
}

/** Whether the running kernel is of this version or newer. */
export function kernelIsAtLeast(major: number, minor: number): boolean {
  const [ownMajor = 0, ownMinor = 0] = release().split('.').map(Number);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}

/**
 * Whether this process lives in a mount namespace that some ancestor of it does not share, so that a test may
 * mount. Ancestors that it may not look at (pid 1 of some hosts) are passed over.
 */
export function inPrivateMountNamespace(): boolean {
  const own = readlinkSync('/proc/self/ns/mnt');
  for (let pid = process.ppid; pid > 0; pid = parentOf(pid)) {
    try {
      if (readlinkSync(`/proc/${pid}/ns/mnt`) !== own) return true;
    } catch {
      // Not ours to see.
    }
  }
  return false;
}

function parentOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^PPid:\s+(\d+)/m.exec(status)?.[1] ?? 0);
}
