import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { BLOCK_BYTES, type BuiltBlob, type BuiltLayer, openBlobIndex } from '@dsec/erofs';
import { syncDirectory } from '@dsec/linux';
import { asDsecError, DsecError } from '@dsec/std';
import { crashPoint } from './crash-point.ts';
import { createDirectory, createFile, promised, readBounded, syncFile } from './durable-file.ts';
import type { LayerRef } from './layer-ref.ts';
import { type LayerManifest, manifestOf } from './manifest.ts';
import { readMetadata } from './node-metadata.ts';
import { INDEX_BYTES_MAX, verifyBlobData } from './published-blob.ts';
import { encodeRecord } from './record-file.ts';
import { checkRefIsFree, commitRef, prepareRef, type RefRecord } from './ref-store.ts';
import { inTheWay, repairPublished } from './repair.ts';
import type { Stage } from './stage.ts';
import { readManifest } from './store-directory.ts';
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
 * finds the very thing that it wanted to put there: it checks that to the last byte, replaces what is
 * damaged (`repair.ts`), and goes on. The same holds for a repeat after a crash.
 */

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

export interface Published {
  /** What the ref has now. */
  readonly record: RefRecord;
  /** Damaged files of the store that were replaced, relative to its root. */
  readonly repaired: readonly string[];
}

/**
 * Publishes a built layer, whose blob data is already in the stage, and names it. `already-exists` when
 * the ref means something else; nothing is published then.
 */
export async function publishLayer(
  store: LayerStore,
  publication: Publication,
): Promise<Published> {
  const { stage, built, ref, record } = publication;
  const paths = stagePaths(stage);
  await checkRefIsFree(store, ref, record);
  await writeStage(paths, built, record);
  crashPoint('build.after-files');
  await syncStage(paths, built);
  await prepareRef(store, ref);
  crashPoint('build.after-fsync');
  const repaired = [
    ...(built.blob === undefined ? [] : await publishBlob(store, paths, built.blob)),
    ...(await publishMetadata(store, paths, manifestOf(built))),
  ];
  return { record: await commitRef(store, ref, { path: paths.ref, record }), repaired };
}

async function writeStage(paths: StagePaths, built: BuiltLayer, record: RefRecord): Promise<void> {
  await createDirectory(paths.layer.directory);
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

async function publishBlob(
  store: LayerStore,
  { blob: staged }: StagePaths,
  blob: BuiltBlob,
): Promise<string[]> {
  const target = blobPaths(store, blob.blobId);
  const isNew = await renameIfFree(staged.directory, target.directory);
  crashPoint('publish.after-blob-rename');
  const repaired = isNew ? [] : await repairBlob(store, staged, blob);
  await syncDirectory(blobsDirectory(store));
  crashPoint('publish.after-blob-fsync');
  return repaired;
}

async function publishMetadata(
  store: LayerStore,
  { layer: staged }: StagePaths,
  manifest: LayerManifest,
): Promise<string[]> {
  const target = layerPaths(store, manifest.layerId);
  const isNew = await renameIfFree(staged.directory, target.directory);
  crashPoint('publish.after-layer-rename');
  const repaired = isNew ? [] : await repairMetadata(store, staged, manifest);
  // Also when another process renamed it: that one may not have synced the name yet.
  await syncDirectory(layersDirectory(store));
  crashPoint('publish.after-layer-fsync');
  return repaired;
}

/** rename(2) refuses to replace a directory that is not empty: ENOTEMPTY, on some file systems EEXIST. */
async function renameIfFree(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    if (code === 'ENOTDIR') throw inTheWay(to, thrown);
    throw asDsecError(thrown);
  }
}

function repairBlob(
  store: LayerStore,
  staged: StagePaths['blob'],
  blob: BuiltBlob,
): Promise<string[]> {
  const { blobId, blocks } = blob;
  const target = blobPaths(store, blobId);
  const index = openBlobIndex(blobId, blob.index);
  return repairPublished(store, target.directory, [
    {
      staged: staged.index,
      published: target.index,
      async check() {
        const found = await promised(readBounded(target.index, INDEX_BYTES_MAX));
        if (!found.equals(blob.index)) throw new DsecError('data-loss', 'it is another index');
      },
    },
    {
      staged: staged.data,
      published: target.data,
      check: () => verifyBlobData(store, { blobId, bytes: blocks * BLOCK_BYTES, index }),
    },
  ]);
}

/** The manifest's statistics may differ: they tell how the layer was built first. */
function repairMetadata(
  store: LayerStore,
  staged: StagePaths['layer'],
  manifest: LayerManifest,
): Promise<string[]> {
  const { layerId, treeDigest, metaBytes, devices } = manifest;
  const target = layerPaths(store, layerId);
  return repairPublished(store, target.directory, [
    {
      staged: staged.meta,
      published: target.meta,
      async check() {
        await readMetadata(target.meta, manifest);
      },
    },
    {
      staged: staged.manifest,
      published: target.manifest,
      async check() {
        const found = await readManifest(store, layerId);
        const isRight =
          found.treeDigest === treeDigest &&
          found.metaBytes === metaBytes &&
          isDeepStrictEqual(found.devices, devices);
        if (!isRight) throw new DsecError('data-loss', 'the manifest describes another layer');
      },
    },
  ]);
}
