import { BLOCK_BYTES, type BuiltLayer } from '@dsec/erofs';
import { type Digest, DsecError } from '@dsec/std';
import type { Static } from 'typebox';
import { DEVICES_MAX, MANIFEST_FORMAT } from './record-limits.ts';
import type { LayerManifestSchema } from './record-schemas.ts';

/** Who encoded the metadata; raised when the same input gives other bytes. */
const WRITER = 'dsec-erofs/1';

export type LayerManifest = Static<typeof LayerManifestSchema>;

/** The manifest of a layer that has just been built. */
export function manifestOf(built: BuiltLayer): LayerManifest {
  if (built.devices.length > DEVICES_MAX) {
    throw new DsecError('import-limit', `a layer may use at most ${DEVICES_MAX} data blobs`);
  }
  return {
    format: MANIFEST_FORMAT,
    writer: WRITER,
    layerId: built.layerId,
    treeDigest: built.treeDigest,
    metaBytes: built.meta.length,
    devices: built.devices.map(({ blobId, blocks }) => ({
      blobId,
      blocks,
      bytes: blocks * BLOCK_BYTES,
    })),
    stats: { ...built.stats },
  };
}

/** Throws `data-loss` when a manifest contradicts itself or the name under which it was found. */
export function checkManifest(manifest: LayerManifest, layerId: Digest): LayerManifest {
  const wrong = (what: string) => new DsecError('data-loss', `manifest of ${layerId}: ${what}`);
  if (manifest.layerId !== layerId) throw wrong(`it belongs to ${manifest.layerId}`);
  for (const { blobId, blocks, bytes } of manifest.devices) {
    if (bytes !== blocks * BLOCK_BYTES) throw wrong(`blob ${blobId}: bytes and blocks disagree`);
  }
  const distinct = new Set(manifest.devices.map((device) => device.blobId));
  if (distinct.size !== manifest.devices.length) throw wrong('a blob is listed twice');
  return manifest;
}
