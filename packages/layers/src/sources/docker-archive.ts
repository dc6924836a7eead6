import type { LayerBuilder } from '@dsec/erofs';
import { DsecError, parseDigest } from '@dsec/std';
import { readDocument } from './image-blob.ts';
import { ConfigSchema, parseDocument, SavedImagesSchema } from './image-documents.ts';
import { type ImageFiles, SAVED_IMAGES_FILE } from './image-files.ts';
import {
  ambiguous,
  type ImageChoice,
  type ImageContext,
  type ImportedImage,
  importImageLayers,
  unknownReference,
} from './image-layers.ts';
import { shown } from './member-path.ts';

const NAME_BYTES_MAX = 255;
/** Letters that the names of saved layers and configurations have; no part may start with a dot. */
const SAFE_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.:-]*(?:\/[A-Za-z0-9_][A-Za-z0-9_.:-]*)*$/;
/** A configuration's name holds its digest: `<hex>.json`, `sha256:<hex>` or `blobs/sha256/<hex>`. */
const NAMED_DIGEST = /^(?:sha256:|blobs\/sha256\/)?([0-9a-f]{64})(?:\.json)?$/;

/**
 * Imports one image of an archive of `docker save`, in its older form and in the newer one that is an OCI
 * layout too. Its `manifest.json` gives no digests, so each layer must have the one that the configuration
 * says of its content, and the configuration the one in its own name. Throws as `importOciLayout`.
 */
export async function importDockerArchive(
  files: ImageFiles,
  builder: LayerBuilder,
  choice: ImageChoice,
  context: ImageContext,
): Promise<ImportedImage> {
  const { limits } = context;
  const bytes = readDocument(files, SAVED_IMAGES_FILE, limits).bytes;
  const saved = chooseSaved(parseDocument(bytes, SavedImagesSchema, SAVED_IMAGES_FILE), choice);
  const configName = safeName(saved.Config);
  const named = NAMED_DIGEST.exec(configName)?.[1];
  if (named === undefined) {
    throw new DsecError('import-invalid', `the configuration ${shown(configName)} has no digest`);
  }
  const claim = { digest: parseDigest(`sha256:${named}`) };
  const { bytes: configBytes, digest } = readDocument(files, configName, limits, claim);
  const config = parseDocument(configBytes, ConfigSchema, 'configuration');
  const claims = (saved.Layers ?? []).map((name) => ({ name: safeName(name) }));
  const image = await importImageLayers(files, config, claims, builder, choice, context);
  return { image, digest };
}

type SavedImage = { Config: string; RepoTags?: string[] | null; Layers?: string[] | null };

function chooseSaved(images: readonly SavedImage[], { reference }: ImageChoice): SavedImage {
  const fitting = images.filter(
    ({ RepoTags }) => reference === undefined || RepoTags?.includes(reference),
  );
  const names = images.flatMap(({ RepoTags }) => (RepoTags ?? []).map(shown));
  const [first, second] = fitting;
  if (first === undefined) {
    if (reference !== undefined) throw unknownReference(reference, names);
    throw new DsecError('import-invalid', 'the archive holds no image');
  }
  if (second !== undefined) throw ambiguous(names);
  return first;
}

/** A name inside the archive, as it may be looked up. */
function safeName(name: string): string {
  if (name.length > NAME_BYTES_MAX || !SAFE_NAME.test(name)) {
    throw new DsecError('import-invalid', `the image names a file ${shown(name)}`);
  }
  return name;
}
