import { join } from 'node:path';
import { type Digest, DsecError } from '@dsec/std';
import type { ImportedLayer } from './import-job.ts';
import type { LayerProgress } from './layer-progress.ts';
import { formatLayerRef, type LayerKind, parseLayerRef } from './layer-ref.ts';
import { resolveRef } from './ref-store.ts';
import { IMPORT_LIMITS_DEFAULT, type ImportLimits, type ImportSource } from './sources/index.ts';
import { newStageName, sweepStage, sweepStages } from './stage.ts';
import { type LayerStore, stagesDirectory } from './store-layout.ts';
import { INHERITED_FD, runInWorker } from './worker-client.ts';

export interface ImportLayerOptions {
  readonly store: LayerStore;
  readonly kind: LayerKind;
  readonly name: string;
  /** A full semantic version. */
  readonly version: string;
  /** A descriptor in it stays open and the caller's. */
  readonly source: ImportSource;
  /** Default `IMPORT_LIMITS_DEFAULT`. */
  readonly limits?: Partial<ImportLimits>;
  /** Default: `keep` for a diff, `apply` for every other kind. */
  readonly whiteouts?: 'keep' | 'apply';
  /**
   * Refs of layers whose blobs may hold chunks of the new one: the previous version, the base; of kind
   * grading where that is. Default none.
   */
  readonly dedup?: readonly string[];
  /** Whose a new name is; one that is there already keeps the owner that it has. Default nobody's. */
  readonly owner?: string | undefined;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: LayerProgress) => void;
}

/**
 * Makes a layer of a source and gives it a name. The work runs in a process of its own; temporary space
 * is the new blob and its metadata, in the store. Importing the same thing again, or in two processes at
 * once, gives the same layer once, and repairs what of it is damaged in the store. Errors:
 * `import-invalid`, `import-limit`; `already-exists` when the version names something else;
 * `storage-full`, `permission-denied`, `cancelled`; `overloaded` when the worker was killed for want of
 * memory. After any of them, and after a crash of the worker, nothing of the import is left; after a crash
 * of this process too, the next import or `sweepStages` removes what is.
 */
export async function importLayer(options: ImportLayerOptions): Promise<ImportedLayer> {
  const { store, kind, name, version, source, signal, onProgress } = options;
  const ref = parseLayerRef(formatLayerRef({ kind, name, version }));
  const dedupLayers: Digest[] = [];
  for (const text of options.dedup ?? []) {
    const shared = await resolveRef(store, text);
    if ((parseLayerRef(shared.ref).kind === 'grading') !== (kind === 'grading')) {
      throw new DsecError('invalid-argument', 'what grades shares no data with what solvers mount');
    }
    dedupLayers.push(shared.layerId);
  }
  await sweepStages(stagesDirectory(store));

  const stageName = newStageName();
  const inheritFd = 'fd' in source ? source.fd : undefined;
  try {
    return await runInWorker(
      {
        type: 'import',
        storeRoot: store.root,
        stageName,
        ref,
        source: inheritFd === undefined ? source : { kind: 'tar', fd: INHERITED_FD },
        whiteouts: options.whiteouts ?? (kind === 'diff' ? 'keep' : 'apply'),
        limits: { ...IMPORT_LIMITS_DEFAULT, ...options.limits },
        dedupLayers,
        owner: options.owner,
      },
      { signal, onProgress, inheritFd },
    );
  } finally {
    // A worker that could clean up has done so. What a killed one left goes now, or by a later sweep.
    await sweepStage(join(stagesDirectory(store), stageName)).catch(() => false);
  }
}
