/**
 * The shapes of the store's records. A module of its own, since TypeBox takes a third of a second of CPU to
 * load: whoever only writes records does without it (`record-file.ts`).
 */
import { BLOCK_BYTES } from '@dsec/erofs';
import type { Digest } from '@dsec/std';
import { Type } from 'typebox';
import {
  DEVICES_MAX,
  MANIFEST_FORMAT,
  META_BYTES_MAX,
  RECORD_BYTES_MAX,
  REF_FORMAT,
} from './record-limits.ts';
import type { ImageMetadata } from './sources/index.ts';

const closed = { additionalProperties: false };
const DigestSchema = Type.Unsafe<Digest>(
  Type.String({ pattern: '^sha256:[0-9a-f]{64}$', maxLength: 71 }),
);
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

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
    format: Type.Literal(MANIFEST_FORMAT),
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

const Text = Type.String({ maxLength: RECORD_BYTES_MAX });

const Texts = Type.Array(Text, { maxItems: 65_536 });

/** How the image that a layer came from wants its processes started. Advice to whoever creates a sandbox. */
const ImageSchema = Type.Unsafe<ImageMetadata>(
  Type.Object({ env: Texts, workdir: Text, user: Text, entrypoint: Texts, command: Texts }, closed),
);

/** Where the content came from, and the digest of what was read there, if that has one. */
const ProvenanceSchema = Type.Object(
  {
    kind: Type.String({ minLength: 1, maxLength: 64 }),
    digest: Type.Union([DigestSchema, Type.Null()]),
  },
  closed,
);

/** `refs/<kind>/<name>/<version>`: what a name means. */
export const RefRecordSchema = Type.Object(
  {
    format: Type.Literal(REF_FORMAT),
    ref: Type.String({ maxLength: 512 }),
    layerId: DigestSchema,
    treeDigest: DigestSchema,
    image: Type.Union([ImageSchema, Type.Null()]),
    source: ProvenanceSchema,
    createdAtMs: Type.Integer({ minimum: 0 }),
    /** Who made the name, where its maker said so. It stands here, so that both are there at once. */
    owner: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  },
  closed,
);
