import type { LayerManifest, RefRecord } from '@dsec/layers';
import type { Layer, LayerRef } from '@dsec/protocol';
import type { Static } from 'typebox';

/** As the API shows a layer. */
export function layerOf({ layerId, treeDigest, metaBytes, devices, stats }: LayerManifest): Layer {
  const { entries, contentBytes, storedBytes, sharedBytes } = stats;
  return {
    ...{ layerId, treeDigest, metaBytes, entries, contentBytes, storedBytes, sharedBytes },
    devices: devices.map(({ blobId, bytes }) => ({ blobId, bytes })),
  };
}

export function layerRefOf({
  ref,
  layerId,
  treeDigest,
  createdAtMs,
}: RefRecord): Static<typeof LayerRef> {
  return { ref, layerId, treeDigest, createdAtMs };
}
