/**
 * What grades and what solvers may mount never share a layer (THREATS A3): one that has had a name of kind
 * `grading` is marked for good, and gets no name of another kind; one that has such a name gets none of kind
 * `grading`.
 */
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '@dsec/linux';
import { asDsecError, type Digest, DsecError, hexOfDigest } from '@dsec/std';
import { ensureDirectory } from './durable-file.ts';
import { formatLayerRef, type LayerRef } from './layer-ref.ts';
import type { LayerStore } from './store-layout.ts';

const marksDirectory = (store: LayerStore) => join(store.root, 'grading');
const markPath = (store: LayerStore, layerId: Digest) =>
  join(marksDirectory(store), hexOfDigest(layerId));

/** Durable before it resolves. */
export async function markGrading(store: LayerStore, layerId: Digest): Promise<void> {
  await ensureDirectory(marksDirectory(store));
  await writeFile(markPath(store, layerId), '', { mode: 0o444 }).catch((thrown: unknown) => {
    // Marked already, and not writable for everybody.
    if ((thrown as NodeJS.ErrnoException).code !== 'EACCES') throw asDsecError(thrown);
  });
  await syncDirectory(marksDirectory(store));
}

export async function isGrading(store: LayerStore, layerId: Digest): Promise<boolean> {
  try {
    await access(markPath(store, layerId));
    return true;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw asDsecError(thrown);
  }
}

/** Of a name that would make a layer both. */
export function bothKinds(ref: LayerRef, other: string): DsecError {
  return new DsecError(
    'invalid-argument',
    `${formatLayerRef(ref)}: the same layer is ${other}, and what grades is never what a solver can mount`,
    { details: { field: 'kind' } },
  );
}
