import { type Digest, DsecError, formatBytes } from '@dsec/std';
import { type Static, type TSchema, Type } from 'typebox';
import { Check } from 'typebox/value';
import type { Compression } from './compression.ts';
import type { ImportLimits } from './limits.ts';

/**
 * The JSON documents of images, as the OCI image specification 1.1 and docker define them, cut to what an
 * import needs. Everything in them is a claim; a name in them is never used as a path before it was checked.
 */

const INDEX_TYPES: readonly string[] = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
];
const MANIFEST_TYPES: readonly string[] = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
];
export const CONFIG_TYPES: readonly string[] = [
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
];
/** The layers that can be read, and what their bytes must then be. */
export const LAYER_TYPES: ReadonlyMap<string, Compression> = new Map([
  ['application/vnd.oci.image.layer.v1.tar', 'none'],
  ['application/vnd.oci.image.layer.v1.tar+gzip', 'gzip'],
  ['application/vnd.oci.image.layer.v1.tar+zstd', 'zstd'],
  ['application/vnd.docker.image.rootfs.diff.tar', 'none'],
  ['application/vnd.docker.image.rootfs.diff.tar.gzip', 'gzip'],
  ['application/vnd.docker.image.rootfs.diff.tar.zstd', 'zstd'],
]);

const SHORT_MAX = 255;
const nullable = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const Short = Type.String({ maxLength: SHORT_MAX });
const DigestSchema = Type.Unsafe<Digest>(Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }));
const PlatformSchema = Type.Object({ architecture: Short, os: Short, variant: nullable(Short) });

const DescriptorSchema = Type.Object({
  mediaType: Short,
  digest: DigestSchema,
  size: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  platform: nullable(PlatformSchema),
  annotations: nullable(Type.Record(Type.String(), Type.String())),
});

export const LayoutSchema = Type.Object({ imageLayoutVersion: Type.Literal('1.0.0') });

export const IndexSchema = Type.Object({
  schemaVersion: Type.Literal(2),
  mediaType: Type.Optional(Type.Enum([...INDEX_TYPES])),
  manifests: Type.Array(DescriptorSchema),
  // A document that can be read as either kind has been used to show two readers two images.
  layers: Type.Optional(Type.Never()),
  config: Type.Optional(Type.Never()),
});

export const ManifestSchema = Type.Object({
  schemaVersion: Type.Literal(2),
  mediaType: Type.Optional(Type.Enum([...MANIFEST_TYPES])),
  config: DescriptorSchema,
  layers: Type.Array(DescriptorSchema),
  manifests: Type.Optional(Type.Never()),
});

export const ConfigSchema = Type.Object({
  architecture: Short,
  os: Short,
  variant: nullable(Short),
  config: nullable(
    Type.Object({
      Env: nullable(Type.Array(Type.String())),
      WorkingDir: nullable(Type.String()),
      User: nullable(Type.String()),
      Entrypoint: nullable(Type.Array(Type.String())),
      Cmd: nullable(Type.Array(Type.String())),
    }),
  ),
  rootfs: Type.Object({
    type: Type.Literal('layers'),
    diff_ids: nullable(Type.Array(DigestSchema)),
  }),
});

/** `manifest.json` of `docker save`: one element for each image. */
export const SavedImagesSchema = Type.Array(
  Type.Object({
    Config: Short,
    RepoTags: nullable(Type.Array(Type.String())),
    Layers: nullable(Type.Array(Short)),
  }),
);

export type Descriptor = Static<typeof DescriptorSchema>;
export type ImageConfigDocument = Static<typeof ConfigSchema>;

/** Parses a document, or throws `import-invalid` naming it. */
export function parseDocument<T extends TSchema>(
  bytes: Buffer,
  schema: T,
  what: string,
): Static<T> {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch (thrown) {
    throw new DsecError('import-invalid', `the image's ${what} is not JSON`, { cause: thrown });
  }
  if (!Check(schema, value)) {
    throw new DsecError('import-invalid', `the image's ${what} does not have the expected form`);
  }
  return value;
}

export function isIndex({ mediaType }: Descriptor): boolean {
  return INDEX_TYPES.includes(mediaType);
}

export function isManifest({ mediaType }: Descriptor): boolean {
  return MANIFEST_TYPES.includes(mediaType);
}

/** How an image wants processes started. Claims of its author: advice, never trusted. */
export interface ImageMetadata {
  /** `NAME=value`. */
  readonly env: string[];
  readonly workdir: string;
  readonly user: string;
  readonly entrypoint: string[];
  readonly command: string[];
}

/**
 * `import-limit` when more than `imageMetadataBytesMax` would be kept; `import-invalid` for a NUL in a
 * string.
 */
export function metadataOf({ config }: ImageConfigDocument, limits: ImportLimits): ImageMetadata {
  const metadata: ImageMetadata = {
    env: config?.Env ?? [],
    workdir: config?.WorkingDir ?? '',
    user: config?.User ?? '',
    entrypoint: config?.Entrypoint ?? [],
    command: config?.Cmd ?? [],
  };
  const { env, workdir, user, entrypoint, command } = metadata;
  const strings = [...env, workdir, user, ...entrypoint, ...command];
  if (Buffer.byteLength(JSON.stringify(metadata)) > limits.imageMetadataBytesMax) {
    const most = formatBytes(limits.imageMetadataBytesMax);
    const message = `the image's environment and command take more than ${most}`;
    throw new DsecError('import-limit', message);
  }
  if (strings.some((text) => text.includes('\0'))) {
    throw new DsecError('import-invalid', "the image's environment or command holds a NUL");
  }
  return metadata;
}
