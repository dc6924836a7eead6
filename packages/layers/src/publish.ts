import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { BLOCK_BYTES, type BuiltBlob, type BuiltLayer } from '@dsec/erofs';
import { syncDirectory } from '@dsec/linux';
import { asDsecError, type Digest, DsecError } from '@dsec/std';
import { crashPoint } from './crash-point.ts';
import { createFile, readBounded, syncFile } from './durable-file.ts';
import type { LayerRef } from './layer-ref.ts';
import { manifestOf } from './manifest.ts';
import { readMetadata } from './node-metadata.ts';
import { encodeRecord } from './record-file.ts';
import { checkRefIsFree, commitRef, prepareRef, type RefRecord } from './ref-store.ts';
import type { Stage } from './stage.ts';
import { checkBlobFile, readManifest } from './store-directory.ts';
import {
  blobPaths,
  blobsDirectory,
  type LayerStore,
  layerPaths,
  layersDirectory,
} from './store-layout.ts';

/**
 * Publishing (THREATS I6). Everything that needs space is written and synced in the stage first. Then
 * three steps, each atomic and each made durable before the next: the blob's directory is renamed into
 * place, then the layer's, then the ref is linked. A crash leaves at most a whole blob or a whole layer
 * that nothing names yet.
 *
 * Two processes need no lock. Names are digests of what is published, so whoever finds the name taken
 * finds the very thing that it wanted to put there: it checks that, and goes on. The same holds for a
 * repeat after a crash.
 */

export const INDEX_BYTES_MAX = 2 ** 31 - 1;

export interface StagePaths {
  readonly blob: { readonly directory: string; readonly data: string; readonly index: string };
  readonly layer: { readonly directory: string; readonly meta: string; readonly manifest: string };
  readonly ref: string;
}

export function stagePaths(stage: Stage): StagePaths {
  const blob = join(stage.path, 'blob');
  const layer = join(stage.path, 'layer');
  return {
    blob: { directory: blob, data: join(blob, 'data'), index: join(blob, 'index') },
    layer: {
      directory: layer,
      meta: join(layer, 'meta.erofs'),
      manifest: join(layer, 'layer.json'),
    },
    ref: join(stage.path, 'ref'),
  };
}

export interface Publication {
  readonly stage: Stage;
  readonly built: BuiltLayer;
  readonly ref: LayerRef;
  readonly record: RefRecord;
}

/**
 * Publishes a built layer, whose blob data is already in the stage, and names it. Returns the record that
 * the ref has now. `already-exists` when the ref means something else; nothing is published then.
 */
export async function publishLayer(
  store: LayerStore,
  publication: Publication,
): Promise<RefRecord> {
  const { stage, built, ref, record } = publication;
  const paths = stagePaths(stage);
  await checkRefIsFree(store, ref, record);
  await writeStage(paths, built, record);
  crashPoint('build.after-files');
  await syncStage(paths, built);
  await prepareRef(store, ref);
  crashPoint('build.after-fsync');
  if (built.blob !== undefined) await publishBlob(store, paths, built.blob);
  await publishMetadata(store, paths, built.layerId);
  return commitRef(store, ref, { path: paths.ref, record });
}

async function writeStage(paths: StagePaths, built: BuiltLayer, record: RefRecord): Promise<void> {
  await mkdir(paths.layer.directory);
  await createFile(paths.layer.meta, built.meta);
  await createFile(paths.layer.manifest, encodeRecord(manifestOf(built)));
  await createFile(paths.ref, encodeRecord(record));
  if (built.blob !== undefined) await createFile(paths.blob.index, built.blob.index);
}

async function syncStage(paths: StagePaths, built: BuiltLayer): Promise<void> {
  const { blob, layer, ref } = paths;
  const blobFiles = built.blob === undefined ? [] : [blob.data, blob.index];
  for (const file of [...blobFiles, layer.meta, layer.manifest, ref]) await syncFile(file);
  if (built.blob !== undefined) await syncDirectory(blob.directory);
  await syncDirectory(layer.directory);
}

async function publishBlob(store: LayerStore, paths: StagePaths, blob: BuiltBlob): Promise<void> {
  const target = blobPaths(store, blob.blobId);
  const isNew = await renameIfFree(paths.blob.directory, target.directory);
  crashPoint('publish.after-blob-rename');
  if (!isNew) await checkPublishedBlob(store, blob);
  await syncDirectory(blobsDirectory(store));
  crashPoint('publish.after-blob-fsync');
}

async function publishMetadata(
  store: LayerStore,
  paths: StagePaths,
  layerId: Digest,
): Promise<void> {
  const target = layerPaths(store, layerId);
  const isNew = await renameIfFree(paths.layer.directory, target.directory);
  crashPoint('publish.after-layer-rename');
  if (!isNew) await checkPublishedLayer(store, layerId);
  // Also when another process renamed it: that one may not have synced the name yet.
  await syncDirectory(layersDirectory(store));
  crashPoint('publish.after-layer-fsync');
}

/** rename(2) refuses to replace a directory that is not empty: ENOTEMPTY, on some file systems EEXIST. */
async function renameIfFree(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw asDsecError(thrown);
  }
}

async function checkPublishedBlob(store: LayerStore, blob: BuiltBlob): Promise<void> {
  const index = await readBounded(blobPaths(store, blob.blobId).index, INDEX_BYTES_MAX);
  if (!index.equals(blob.index)) {
    throw new DsecError('data-loss', `blob ${blob.blobId} in the store has another index`);
  }
  await checkBlobFile(store, { blobId: blob.blobId, bytes: blob.blocks * BLOCK_BYTES });
}

async function checkPublishedLayer(store: LayerStore, layerId: Digest): Promise<void> {
  const manifest = await readManifest(store, layerId);
  await readMetadata(layerPaths(store, layerId).meta, manifest);
}
