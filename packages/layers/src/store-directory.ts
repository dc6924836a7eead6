import { mkdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { syncDirectory } from '@dsec/linux';
import { asDsecError, type Digest, DsecError, hexOfDigest } from '@dsec/std';
import { openRegularFile, readJson } from './durable-file.ts';
import type { LayerRef } from './layer-ref.ts';
import {
  checkManifest,
  type LayerManifest,
  LayerManifestSchema,
  RECORD_BYTES_MAX,
} from './manifest.ts';

/**
 * A layer store: one directory, on a local disk or on a file system that several nodes share. It needs rename and link
 * to be atomic; it needs no daemon and no lock for reading. Layout:
 *
 *     layers/<layerId>/{meta.erofs, layer.json}
 *     blobs/<blobId>/{data, index}
 *     refs/<kind>/<name>/<version>
 *     tmp/<random>/{owner, …}        work in progress, swept when its owner is dead
 *
 * Ids are the 64 hex digits of a digest. Nothing that a digest names is ever written again.
 */
export interface LayerStore {
  readonly root: string;
}

const TOP_DIRECTORIES = ['layers', 'blobs', 'refs', 'tmp'] as const;

/** Creates what is missing of a store's top directories and opens it. */
export async function createLayerStore(root: string): Promise<LayerStore> {
  const store = { root: resolve(root) };
  try {
    await mkdir(store.root, { recursive: true });
    for (const name of TOP_DIRECTORIES) await mkdir(join(store.root, name), { recursive: true });
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

export const layersDirectory = (store: LayerStore) => join(store.root, 'layers');
export const blobsDirectory = (store: LayerStore) => join(store.root, 'blobs');
export const refsDirectory = (store: LayerStore) => join(store.root, 'refs');
export const stagesDirectory = (store: LayerStore) => join(store.root, 'tmp');

export function layerPaths(store: LayerStore, layerId: Digest) {
  const directory = join(layersDirectory(store), hexOfDigest(layerId));
  return {
    directory,
    meta: join(directory, 'meta.erofs'),
    manifest: join(directory, 'layer.json'),
  };
}

export function blobPaths(store: LayerStore, blobId: Digest) {
  const directory = join(blobsDirectory(store), hexOfDigest(blobId));
  return { directory, data: join(directory, 'data'), index: join(directory, 'index') };
}

export function refPaths(store: LayerStore, ref: LayerRef) {
  const kindDirectory = join(refsDirectory(store), ref.kind);
  const directory = join(kindDirectory, ref.name);
  return { kindDirectory, directory, file: join(directory, ref.version) };
}

/** `not-found` when the layer is not in the store, `data-loss` when its manifest is damaged. */
export async function readManifest(store: LayerStore, layerId: Digest): Promise<LayerManifest> {
  const path = layerPaths(store, layerId).manifest;
  try {
    return checkManifest(await readJson(path, LayerManifestSchema, RECORD_BYTES_MAX), layerId);
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code !== 'not-found') throw error;
    throw new DsecError('not-found', `layer ${layerId} is not in the store`, { cause: thrown });
  }
}

/** Checks that a blob's data file is there, is a plain file and has the length that layers expect. */
export async function checkBlobFile(
  store: LayerStore,
  blob: { readonly blobId: Digest; readonly bytes: number },
): Promise<void> {
  const { handle, size } = await openRegularFile(blobPaths(store, blob.blobId).data);
  await handle.close();
  if (size !== blob.bytes) {
    throw new DsecError(
      'data-loss',
      `blob ${blob.blobId} has ${size} bytes instead of ${blob.bytes}`,
    );
  }
}
