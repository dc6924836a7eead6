import { closeSync, constants, fstatSync, statSync } from 'node:fs';
import type { LayerBuilder } from '@dsec/erofs';
import { openAt } from '@dsec/linux';
import { asDsecError, type Digest } from '@dsec/std';
import { type ByteSource, drain } from './byte-source.ts';
import { openInput } from './compression.ts';
import { type DirectoryOptions, importDirectory } from './directory.ts';
import type { ImageMetadata } from './image-documents.ts';
import { type ImageFiles, openImageArchive, openImageDirectory } from './image-files.ts';
import { hostPlatform, parsePlatform } from './image-platform.ts';
import { IMPORT_LIMITS_DEFAULT, type ImportLimits } from './limits.ts';
import { createPace, type Pace, throwIfCancelled } from './pace.ts';
import { detectSource, refuseForeign, type SourceKind } from './source-kind.ts';
import { importTar } from './tar.ts';

/** Which image to take, where a source holds several. */
export interface ImageOptions {
  /** `os/architecture[/variant]`; default: this machine's. */
  readonly platform?: string;
  /** A name or tag of the image as the archive gives it. */
  readonly reference?: string;
}

/** What to import. Plain data, so that it can be sent to a worker. */
export type ImportSource =
  | { readonly kind: 'tar'; readonly path: string }
  /** A file, pipe or socket that is open already. The importer takes it over and closes it. */
  | { readonly kind: 'tar'; readonly fd: number }
  | ({ readonly kind: 'directory'; readonly path: string } & DirectoryOptions)
  /** A directory, or a tar that is not compressed. */
  | ({ readonly kind: 'oci-layout' | 'docker-archive'; readonly path: string } & ImageOptions)
  /** Tells by the content. The options are used where they apply. */
  | ({ readonly kind: 'auto'; readonly path: string } & ImageOptions & DirectoryOptions);

export interface ImportProgress {
  readonly entries: number;
  /** Bytes read from the source, as stored there. */
  readonly bytes: number;
  /** How many there will be, where that is known. */
  readonly bytesTotal: number | null;
}

export interface ImportOptions {
  /** Default `IMPORT_LIMITS_DEFAULT`. Limits that the builder enforces must be given to it as well. */
  readonly limits?: ImportLimits;
  readonly signal?: AbortSignal;
  /** Called a few times a second. */
  readonly onProgress?: (progress: ImportProgress) => void;
}

export interface SourceInfo {
  readonly kind: SourceKind;
  /** How the image wants processes started; null when the source was no image. */
  readonly image: ImageMetadata | null;
  /** Of the image's manifest (for a docker archive: its configuration); null when the source was no image. */
  readonly digest: Digest | null;
}

/**
 * Gives everything that a source holds to a builder, in an order that depends only on the source. Nothing is
 * unpacked to disk. Image layers are applied one after another, so the builder must be one with `whiteouts:
 * 'apply'`. After an error the builder holds a part and must be thrown away. Errors: `import-invalid`,
 * `import-limit`, `cancelled`, `conflict` (a directory changed meanwhile), `unsupported` (no zstd command),
 * `invalid-argument`, `not-found`, `permission-denied`. Mostly synchronous: call it in a worker process.
 */
export async function importSource(
  builder: LayerBuilder,
  source: ImportSource,
  options: ImportOptions = {},
): Promise<SourceInfo> {
  const { limits = IMPORT_LIMITS_DEFAULT, signal, onProgress } = options;
  const pace = createPace({
    signal,
    onProgress: ({ bytes, bytesTotal }) =>
      onProgress?.({ entries: builder.progress.entries, bytes, bytesTotal }),
  });
  try {
    throwIfCancelled(signal);
    const context = { limits, pace };
    return await importKnown(builder, await settle(source, context), context);
  } catch (thrown) {
    throw asDsecError(thrown);
  }
}

interface Context {
  readonly limits: ImportLimits;
  readonly pace: Pace;
}

type KnownSource = Exclude<ImportSource, { readonly kind: 'auto' }>;

async function settle(source: ImportSource, { limits, pace }: Context): Promise<KnownSource> {
  if (source.kind !== 'auto') return source;
  const kind = await detectSource(source.path, { limits, signal: pace.signal });
  return { ...source, kind } as KnownSource;
}

async function importKnown(
  builder: LayerBuilder,
  source: KnownSource,
  context: Context,
): Promise<SourceInfo> {
  switch (source.kind) {
    case 'tar':
      await importTarSource(builder, source, context);
      return { kind: 'tar', image: null, digest: null };
    case 'directory':
      await importDirectory(source.path, builder, source, context);
      return { kind: 'directory', image: null, digest: null };
    case 'oci-layout':
    case 'docker-archive':
      return importImageSource(builder, source, context);
  }
}

async function importTarSource(
  builder: LayerBuilder,
  source: { readonly path: string } | { readonly fd: number },
  context: Context,
): Promise<void> {
  const fd = 'fd' in source ? source.fd : openAt(source.path, { flags: constants.O_RDONLY });
  const stat = fstatSync(fd);
  try {
    if (stat.isFile()) {
      refuseForeign(fd);
      context.pace.expect(stat.size);
    }
    const input = await openInput(fd, context);
    try {
      await importTar(input.source, builder, context);
      if (!stat.isFile()) await drainQuietly(input.source, context.pace);
    } finally {
      await input.source.close();
    }
  } finally {
    // The descriptor of a pipe belongs to the stream that reads it.
    if (!stat.isFIFO() && !stat.isSocket()) closeSync(fd);
  }
}

/** What follows the end of an archive is not looked at, so it cannot be wrong either. */
async function drainQuietly(source: ByteSource, { signal }: Pace): Promise<void> {
  try {
    await drain(source);
  } catch (thrown) {
    if (signal?.aborted) throw thrown;
  }
}

async function importImageSource(
  builder: LayerBuilder,
  source: { readonly kind: 'oci-layout' | 'docker-archive'; readonly path: string } & ImageOptions,
  context: Context,
): Promise<SourceInfo> {
  const { platform, reference } = source;
  const choice = {
    platform: platform === undefined ? hostPlatform() : parsePlatform(platform),
    reference,
  };
  const importImage = await importerOf(source.kind);
  const files = await openImageFiles(source.path, context);
  try {
    const imported = await importImage(files, builder, choice, context);
    return { kind: source.kind, ...imported };
  } finally {
    files.close();
  }
}

/** Only images bring documents, and what checks those takes a third of a second of CPU to load. */
async function importerOf(kind: 'oci-layout' | 'docker-archive') {
  return kind === 'oci-layout'
    ? (await import('./oci-layout.ts')).importOciLayout
    : (await import('./docker-archive.ts')).importDockerArchive;
}

async function openImageFiles(path: string, context: Context): Promise<ImageFiles> {
  const isDirectory = statSync(path).isDirectory();
  return isDirectory ? openImageDirectory(path) : openImageArchive(path, context);
}
