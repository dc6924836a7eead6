import { BLOCK_BYTES, type BuiltLayer } from '@dsec/erofs';
import { type Digest, DsecError, MIB } from '@dsec/std';
import { type Static, Type } from 'typebox';

/** Metadata of more bytes is neither written nor read: about 10 million entries. */
export const META_BYTES_MAX = 2048 * MIB;
/** The kernel's device table takes 65,535; a layer is compacted long before this. */
export const DEVICES_MAX = 256;
/** Raised with every change of this record's shape. */
const FORMAT = 1;
/** Who encoded the metadata; raised when the same input gives other bytes. */
const WRITER = 'dsec-erofs/1';

export const DigestSchema = Type.Unsafe<Digest>(
  Type.String({ pattern: '^sha256:[0-9a-f]{64}$', maxLength: 71 }),
);
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const closed = { additionalProperties: false };

const DeviceSchema = Type.Object({ blobId: DigestSchema, blocks: Count, bytes: Count }, closed);

const StatsSchema = Type.Object(
  {
    entries: Count,
    inodes: Count,
    contentBytes: Count,
    holeBytes: Count,
    ownDuplicateBytes: Count,
    sharedBytes: Count,
    storedBytes: Count,
    droppedXattrs: Count,
  },
  closed,
);

/**
 * `layers/<layerId>/layer.json`: what can be said of a layer from its content alone. What a layer is for,
 * where it came from and how to run it differ between two imports of one tree, so they stand in the ref
 * (`ref-store.ts`).
 */
export const LayerManifestSchema = Type.Object(
  {
    format: Type.Literal(FORMAT),
    writer: Type.String({ minLength: 1, maxLength: 64 }),
    layerId: DigestSchema,
    treeDigest: DigestSchema,
    metaBytes: Type.Integer({ minimum: BLOCK_BYTES, maximum: META_BYTES_MAX }),
    /** In the order of the metadata's device table. `bytes` is the length of the blob's data file. */
    devices: Type.Array(DeviceSchema, { maxItems: DEVICES_MAX }),
    stats: StatsSchema,
  },
  closed,
);

export type LayerManifest = Static<typeof LayerManifestSchema>;

/** The manifest of a layer that has just been built. */
export function manifestOf(built: BuiltLayer): LayerManifest {
  if (built.devices.length > DEVICES_MAX) {
    throw new DsecError('import-limit', `a layer may use at most ${DEVICES_MAX} data blobs`);
  }
  return {
    format: FORMAT,
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
