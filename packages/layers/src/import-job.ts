import { open } from 'node:fs/promises';
import {
  BLOCK_BYTES,
  type BuiltLayer,
  createFileBlobSink,
  createLayerBuilder,
  DEDUP_SOURCES_MAX,
  type DedupSource,
} from '@dsec/erofs';
import { punchHole } from '@dsec/linux';
import { type Digest, DsecError, systemClock } from '@dsec/std';
import { crashPoint } from './crash-point.ts';
import { createDirectory, promised, readBounded } from './durable-file.ts';
import type { LayerProgress } from './layer-progress.ts';
import type { LayerRef } from './layer-ref.ts';
import { type LayerManifest, manifestOf } from './manifest.ts';
import { publishLayer, stagePaths } from './publish.ts';
import { INDEX_BYTES_MAX } from './published-blob.ts';
import { type RefRecord, refRecordOf } from './ref-store.ts';
import {
  type ImportLimits,
  type ImportSource,
  importSource,
  type SourceInfo,
} from './sources/index.ts';
import { createStage, type Stage } from './stage.ts';
import { readManifest } from './store-directory.ts';
import { blobPaths, type LayerStore, stagesDirectory } from './store-layout.ts';

/** An import as its worker gets it: complete, without defaults. */
export interface ImportJob {
  readonly type: 'import';
  readonly storeRoot: string;
  readonly stageName: string;
  readonly ref: LayerRef;
  readonly source: ImportSource;
  readonly whiteouts: 'keep' | 'apply';
  readonly limits: ImportLimits;
  /** Layers whose blobs may hold chunks of the new one. */
  readonly dedupLayers: readonly Digest[];
  readonly owner?: string | undefined;
}

export interface ImportedLayer {
  readonly record: RefRecord;
  readonly manifest: LayerManifest;
  /**
   * Files of the store, relative to its root, that were damaged or missing and that this import has
   * replaced by right ones.
   */
  readonly repaired: readonly string[];
}

/** Reads the source, builds the layer in a stage of the store and publishes it. Runs in a worker. */
export async function runImport(
  job: ImportJob,
  onProgress: (progress: LayerProgress) => void,
): Promise<ImportedLayer> {
  const store = { root: job.storeRoot };
  const dedupSources = await readDedupSources(store, job.dedupLayers);
  const stage = await createStage(stagesDirectory(store), job.stageName);
  try {
    const { built, source } = await buildInStage(stage, job, dedupSources, onProgress);
    crashPoint('build.after-blob');
    const record = refRecordOf(job.ref, {
      layerId: built.layerId,
      treeDigest: built.treeDigest,
      image: source.image,
      source: { kind: source.kind, digest: source.digest },
      createdAtMs: systemClock.wallMs(),
      ...(job.owner === undefined ? {} : { owner: job.owner }),
    });
    const published = await publishLayer(store, { stage, built, ref: job.ref, record });
    return { ...published, manifest: manifestOf(built) };
  } finally {
    await stage.discard();
  }
}

/**
 * The blob is written where it will be published from, so an import needs no other space than the layer
 * itself.
 */
async function buildInStage(
  stage: Stage,
  job: ImportJob,
  dedupSources: readonly DedupSource[],
  onProgress: (progress: LayerProgress) => void,
): Promise<{ built: BuiltLayer; source: SourceInfo }> {
  const { blob } = stagePaths(stage);
  await createDirectory(blob.directory);
  const data = await open(blob.data, 'wx', 0o444);
  try {
    const builder = createLayerBuilder({
      blob: createFileBlobSink(data.fd, punchHole),
      whiteouts: job.whiteouts,
      dedupSources,
      limits: job.limits,
    });
    const source = await importSource(builder, job.source, { limits: job.limits, onProgress });
    crashPoint('build.after-source');
    const built = builder.finish();
    // What was appended last and dropped again is a tail that no name covers.
    await data.truncate((built.blob?.blocks ?? 0) * BLOCK_BYTES);
    return { built, source };
  } finally {
    await data.close();
  }
}

async function readDedupSources(
  store: LayerStore,
  layers: readonly Digest[],
): Promise<DedupSource[]> {
  const blobIds = new Set<Digest>();
  for (const layerId of layers) {
    const { devices } = await readManifest(store, layerId);
    for (const { blobId } of devices) blobIds.add(blobId);
  }
  if (blobIds.size > DEDUP_SOURCES_MAX) {
    throw new DsecError(
      'invalid-argument',
      `the layers to share chunks with have ${blobIds.size} blobs; at most ${DEDUP_SOURCES_MAX} can be used`,
    );
  }
  const sources: DedupSource[] = [];
  for (const blobId of blobIds) {
    sources.push({
      blobId,
      index: await promised(readBounded(blobPaths(store, blobId).index, INDEX_BYTES_MAX)),
    });
  }
  return sources;
}
