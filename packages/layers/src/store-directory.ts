import { lstat, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { makeDirectories, syncDirectory } from '@dsec/linux';
import { asDsecError, type Digest, DsecError } from '@dsec/std';
import { ensureDirectory, openRegularFile, promised } from './durable-file.ts';
import { checkManifest, type LayerManifest } from './manifest.ts';
import { readJson } from './record-file.ts';
import { type SweepOptions, sweepStages } from './stage.ts';
import { blobPaths, type LayerStore, layerPaths, stagesDirectory } from './store-layout.ts';

const TOP_DIRECTORIES = ['layers', 'blobs', 'refs', 'tmp'] as const;

/**
 * Creates what is missing of a store's top directories and opens it. What it makes only its owner can
 * write, whatever the umask.
 */
export async function createLayerStore(root: string): Promise<LayerStore> {
  const store = { root: resolve(root) };
  try {
    makeDirectories(store.root, 0o755);
    for (const name of TOP_DIRECTORIES) await ensureDirectory(join(store.root, name));
    await syncDirectory(store.root);
  } catch (thrown) {
    throw asDsecError(thrown);
  }
  return store;
}

/** Opens a store that exists. `not-found` when the directory is none. */
export async function openLayerStore(root: string): Promise<LayerStore> {
  const store = { root: resolve(root) };
  for (const name of TOP_DIRECTORIES) {
    const found = await stat(join(store.root, name)).catch(() => undefined);
    if (!found?.isDirectory()) {
      throw new DsecError('not-found', `${store.root} is not a layer store: ${name}/ is missing`);
    }
  }
  return store;
}

/** `not-found` when the layer is not in the store, `data-loss` when its manifest is damaged or missing. */
export async function readManifest(store: LayerStore, layerId: Digest): Promise<LayerManifest> {
  const { directory, manifest } = layerPaths(store, layerId);
  try {
    return checkManifest(
      await readJson(manifest, (schemas) => schemas.LayerManifestSchema),
      layerId,
    );
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code !== 'not-found') throw error;
    const isPublished = (await lstat(directory).catch(() => undefined)) !== undefined;
    throw isPublished
      ? new DsecError('data-loss', `the manifest of ${layerId} is missing`, { cause: thrown })
      : new DsecError('not-found', `layer ${layerId} is not in the store`, { cause: thrown });
  }
}

/** Removes what imports left that died with their process. Returns how many; see `sweepStages`. */
export async function sweepLayerStore(
  store: LayerStore,
  options: SweepOptions = {},
): Promise<number> {
  return (await sweepStages(stagesDirectory(store), options)).length;
}

/** Throws `data-loss` unless a blob's data file is there, is a plain file and as long as layers expect. */
export async function checkBlobFile(
  store: LayerStore,
  blob: { readonly blobId: Digest; readonly bytes: number },
): Promise<void> {
  const { handle, size } = await promised(openRegularFile(blobPaths(store, blob.blobId).data));
  await handle.close();
  if (size !== blob.bytes) {
    throw new DsecError(
      'data-loss',
      `blob ${blob.blobId} has ${size} bytes instead of ${blob.bytes}`,
    );
  }
}
