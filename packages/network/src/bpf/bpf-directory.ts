import { closeSync, mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { mountDetached, moveMount } from '@dsec/linux';
import { detachAll } from './links.ts';

const BPF_FS_MAGIC = 0xcafe4a11;

/**
 * Sees to it that a directory is the root of a bpf file system of its own. What is pinned there lives as
 * long as that mount, so it must be made where it outlives the edge: a mount namespace that ends with the
 * edge takes the filters of running sandboxes along.
 */
export function mountBpfDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  if (statfsSync(path).type === BPF_FS_MAGIC) return;
  const mount = mountDetached(
    'bpf',
    [{ kind: 'string', key: 'mode', value: '0700' }],
    ['noSuid', 'noDev', 'noExec'],
  );
  try {
    moveMount(mount, path);
  } finally {
    closeSync(mount);
  }
}

/**
 * Removes every filter of a directory but one, and with it what it does. Without `except` the node is as
 * before the first one.
 */
export function removeFilters(directory: string, except?: string): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (!name.startsWith('filter-') || path === except) continue;
    detachAll(path);
    rmSync(path, { recursive: true });
  }
}
