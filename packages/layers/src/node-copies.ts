import { join, resolve } from 'node:path';
import type { Digest } from '@dsec/std';
import { openPrivateDirectory } from './node-layers.ts';
import { sweepStages } from './stage.ts';
import { readManifest } from './store-directory.ts';
import { blobPaths, type LayerStore, nodeLayerPaths } from './store-layout.ts';
import { runInWorker } from './worker-client.ts';

/** What a mount of a layer is made of, for whoever mounts it elsewhere than in this process. */
export interface LayerFiles {
  /** The node's own copy of the metadata: digest checked, validated. */
  readonly metaPath: string;
  /** Data files in the order of the device table, where they are in the store. */
  readonly devicePaths: readonly string[];
}

export interface NodeCopies {
  /**
   * Copies the layer's metadata to the node, checks it against its digest and the manifest, and
   * validates it, in a worker process. `not-found`, `data-loss`, `layer-invalid`.
   */
  prepare(layerId: Digest, signal?: AbortSignal): Promise<LayerFiles>;
}

/**
 * Opens a node directory (see `nodeLayerPaths`), creating it in one that exists. `permission-denied` when
 * others could write there.
 */
export async function openNodeCopies(store: LayerStore, directory: string): Promise<NodeCopies> {
  const nodeDirectory = resolve(directory);
  await openPrivateDirectory(nodeDirectory);
  await sweepStages(join(nodeDirectory, 'tmp'));
  return {
    async prepare(layerId, signal) {
      const { metaBytes, devices } = await readManifest(store, layerId);
      const layer = { layerId, metaBytes, devices };
      const job = { type: 'prepare', storeRoot: store.root, nodeDirectory, layer } as const;
      await runInWorker(job, { ...(signal !== undefined && { signal }) });
      return {
        metaPath: nodeLayerPaths(nodeDirectory, layerId).meta,
        devicePaths: devices.map(({ blobId }) => blobPaths(store, blobId).data),
      };
    },
  };
}
