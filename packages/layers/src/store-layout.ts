import { join } from 'node:path';
import { type Digest, hexOfDigest } from '@dsec/std';
import type { LayerRef } from './layer-ref.ts';

/**
 * A layer store: one directory, on a local disk or on a file system that several nodes share. It needs
 * rename and link to be atomic; it needs no daemon and no lock for reading. Layout:
 *
 *     layers/<layerId>/{meta.erofs, layer.json}
 *     blobs/<blobId>/{data, index}
 *     refs/<kind>/<name>/<version>
 *     grading/<layerId>              empty: the layer grades, and is nothing else (`grading-mark.ts`)
 *     tmp/<random>/{owner, …}        work in progress, swept when its owner is dead
 *
 * Ids are the 64 hex digits of a digest. Nothing that a digest names is ever written again; a file that
 * fails its digest may be replaced by the right one, by rename (`publish.ts`).
 */
export interface LayerStore {
  readonly root: string;
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

/**
 * A node directory holds what one node needs of the layers that it mounts: `layers/` the verified copies
 * of metadata, `mounts/` the mount points of the `path` form, `tmp/` stages.
 */
export function nodeLayerPaths(nodeDirectory: string, layerId: Digest) {
  const hex = hexOfDigest(layerId);
  return {
    meta: join(nodeDirectory, 'layers', `${hex}.erofs`),
    mount: join(nodeDirectory, 'mounts', hex),
  };
}
