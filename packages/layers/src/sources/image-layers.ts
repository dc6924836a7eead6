import type { LayerBuilder } from '@dsec/erofs';
import { type Digest, DsecError } from '@dsec/std';
import { importLayerBlob, type LayerClaim, openImageFile } from './image-blob.ts';
import { type ImageConfigDocument, type ImageMetadata, metadataOf } from './image-documents.ts';
import type { ImageFiles } from './image-files.ts';
import { formatPlatform, matchesPlatform, type Platform } from './image-platform.ts';
import type { ImportLimits } from './limits.ts';
import type { Pace } from './pace.ts';

/** Which image of an archive or layout to take. */
export interface ImageChoice {
  /** Default: what this machine runs. */
  readonly platform: Platform;
  /** A name or tag that the archive gives the image. Needed only when there are several. */
  readonly reference?: string | undefined;
}

export interface ImageContext {
  readonly limits: ImportLimits;
  readonly pace: Pace;
}

export interface ImportedImage {
  readonly image: ImageMetadata;
  /** Of the manifest; for an archive of `docker save` of the configuration, which is docker's image id. */
  readonly digest: Digest;
}

/** Applies an image's layers, lowest first, each as an image layer of its own (`nextSourceLayer`). */
export async function importImageLayers(
  files: ImageFiles,
  config: ImageConfigDocument,
  claims: readonly Omit<LayerClaim, 'content'>[],
  builder: LayerBuilder,
  choice: ImageChoice,
  context: ImageContext,
): Promise<ImageMetadata> {
  if (!matchesPlatform(config, choice.platform)) throw wrongPlatform([config], choice.platform);
  const metadata = metadataOf(config, context.limits);
  const contents = config.rootfs.diff_ids ?? [];
  checkLayerCount(claims.length, contents.length, context.limits);
  context.pace.expect(sizeOfLayers(files, claims));
  for (const [i, claim] of claims.entries()) {
    if (i > 0) builder.nextSourceLayer();
    const content = contents[i] as Digest;
    await importLayerBlob(files, { ...claim, content }, builder, context);
  }
  return metadata;
}

/** Bytes of all layers as stored. A missing one is found before any is applied. */
function sizeOfLayers(files: ImageFiles, claims: readonly { readonly name: string }[]): number {
  let bytes = 0;
  for (const { name } of claims) {
    const file = openImageFile(files, name);
    bytes += file.end - file.start;
    file.close();
  }
  return bytes;
}

function checkLayerCount(layers: number, contents: number, limits: ImportLimits): void {
  if (layers === 0) throw new DsecError('import-invalid', 'the image has no layers');
  if (layers > limits.imageLayersMax) {
    throw new DsecError('import-limit', `the image has more than ${limits.imageLayersMax} layers`);
  }
  if (layers !== contents) {
    const message = `the image has ${layers} layers, but its configuration names ${contents}`;
    throw new DsecError('import-invalid', message);
  }
}

const PLATFORMS_SHOWN_MAX = 16;

export function wrongPlatform(offered: readonly Platform[], wanted: Platform): DsecError {
  const names = [...new Set(offered.map(formatPlatform))].slice(0, PLATFORMS_SHOWN_MAX);
  const has = names.length === 0 ? 'none' : names.join(', ');
  const message = `there is no image for ${formatPlatform(wanted)}; there is: ${has}`;
  return new DsecError('import-invalid', message);
}

/** More than one image fits, and none was named. */
export function ambiguous(names: readonly string[]): DsecError {
  const shown = names.slice(0, PLATFORMS_SHOWN_MAX).join(', ');
  return new DsecError('invalid-argument', `there are several images; name one of: ${shown}`);
}

export function unknownReference(reference: string, names: readonly string[]): DsecError {
  const shown = names.slice(0, PLATFORMS_SHOWN_MAX).join(', ') || 'none with a name';
  return new DsecError('not-found', `there is no image ${reference}; there is: ${shown}`);
}
