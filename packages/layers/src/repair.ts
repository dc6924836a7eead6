import { rename } from 'node:fs/promises';
import { relative } from 'node:path';
import { syncDirectory } from '@dsec/linux';
import { asDsecError, DsecError } from '@dsec/std';
import { crashPoint } from './crash-point.ts';
import type { LayerStore } from './store-layout.ts';

/**
 * Repair of what is published. Nothing that a digest names is changed in place (THREATS I6): a file that
 * fails its digest is replaced by rename, with one that was built and synced in the stage. Every reader
 * sees the old file or the new one; whoever holds the old one open, a mount among them, keeps it until it
 * opens the file again. A crash leaves some files repaired and the others as they were, for the next import.
 */

export interface RepairableFile {
  readonly staged: string;
  readonly published: string;
  /** Rejects with `data-loss` when the published file is not what its name promises. */
  check(): Promise<void>;
}

/**
 * Checks the files of one published directory and replaces the damaged ones, durably. Returns their paths
 * below the store's root. `data-loss` when something that is no file is in the way.
 */
export async function repairPublished(
  store: LayerStore,
  directory: string,
  files: readonly RepairableFile[],
): Promise<string[]> {
  const repaired: string[] = [];
  for (const { staged, published, check } of files) {
    if (await isSound(check)) continue;
    crashPoint('repair.before-file');
    await replaceFile(staged, published);
    crashPoint('repair.after-file');
    repaired.push(relative(store.root, published));
  }
  if (repaired.length > 0) await syncDirectory(directory);
  crashPoint('repair.after-fsync');
  return repaired;
}

async function isSound(check: () => Promise<void>): Promise<boolean> {
  try {
    await check();
    return true;
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code !== 'data-loss') throw error;
    return false;
  }
}

async function replaceFile(staged: string, published: string): Promise<void> {
  try {
    await rename(staged, published);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EISDIR') throw inTheWay(published, thrown);
    throw asDsecError(thrown);
  }
}

/** Something of another kind than we make is not ours to remove. */
export function inTheWay(path: string, cause: unknown): DsecError {
  const message = `${path} is not what a store keeps there; look what it is, then remove it by hand`;
  return new DsecError('data-loss', message, { cause });
}
