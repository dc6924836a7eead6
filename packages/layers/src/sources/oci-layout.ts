import type { LayerBuilder } from '@dsec/erofs';
import { type Digest, DsecError, hexOfDigest } from '@dsec/std';
import { readDocument } from './image-blob.ts';
import {
  CONFIG_TYPES,
  ConfigSchema,
  type Descriptor,
  IndexSchema,
  isIndex,
  isManifest,
  LAYER_TYPES,
  LayoutSchema,
  ManifestSchema,
  parseDocument,
} from './image-documents.ts';
import { type ImageFiles, LAYOUT_FILE } from './image-files.ts';
import {
  ambiguous,
  type ImageChoice,
  type ImageContext,
  type ImportedImage,
  importImageLayers,
  unknownReference,
  wrongPlatform,
} from './image-layers.ts';
import { matchesPlatform, type Platform } from './image-platform.ts';
import type { ImportLimits } from './limits.ts';
import { shown } from './member-path.ts';

const INDEX_FILE = 'index.json';
/** An index of indexes of indexes; deeper ones mean nothing that people publish. */
const INDEX_DEPTH_MAX = 3;
/** Where writers put an image's name in the index: the specification, and containerd and docker. */
const NAME_ANNOTATIONS = ['org.opencontainers.image.ref.name', 'io.containerd.image.name'];

/**
 * Imports one image of an OCI layout: index, for several platforms further indexes, manifest, configuration,
 * layers. Every blob is read from `blobs/sha256/<hex>` and nothing else, and its size and digest are checked.
 * Throws `import-invalid` for whatever does not fit together, `invalid-argument` or `not-found` when the
 * choice does not name one image.
 */
export async function importOciLayout(
  files: ImageFiles,
  builder: LayerBuilder,
  choice: ImageChoice,
  context: ImageContext,
): Promise<ImportedImage> {
  const { limits } = context;
  parseDocument(readDocument(files, LAYOUT_FILE, limits).bytes, LayoutSchema, LAYOUT_FILE);
  const chosen = chooseManifest(files, choice, limits);
  const manifest = parseDocument(readBlob(files, chosen, limits), ManifestSchema, 'manifest');
  if (manifest.mediaType !== undefined && manifest.mediaType !== chosen.mediaType) {
    throw new DsecError('import-invalid', "the manifest's media type is not what the index says");
  }
  if (!CONFIG_TYPES.includes(manifest.config.mediaType)) throw badType(manifest.config);
  const configBytes = readBlob(files, manifest.config, limits);
  const config = parseDocument(configBytes, ConfigSchema, 'configuration');
  const claims = manifest.layers.map((layer) => {
    const compression = LAYER_TYPES.get(layer.mediaType);
    if (compression === undefined) throw badType(layer);
    return { name: blobName(layer.digest), stored: layer, compression };
  });
  const image = await importImageLayers(files, config, claims, builder, choice, context);
  return { image, digest: chosen.digest };
}

/** The only form in which anything of an image becomes a path. */
function blobName(digest: Digest): string {
  return `blobs/sha256/${hexOfDigest(digest)}`;
}

function readBlob(files: ImageFiles, descriptor: Descriptor, limits: ImportLimits): Buffer {
  return readDocument(files, blobName(descriptor.digest), limits, descriptor).bytes;
}

function chooseManifest(files: ImageFiles, choice: ImageChoice, limits: ImportLimits): Descriptor {
  const bytes = readDocument(files, INDEX_FILE, limits).bytes;
  const { manifests } = parseDocument(bytes, IndexSchema, INDEX_FILE);
  const named = manifests.filter(({ annotations }) =>
    NAME_ANNOTATIONS.some((key) => annotations?.[key] === choice.reference),
  );
  const names = manifests.map(nameOf);
  if (choice.reference !== undefined && named.length === 0) {
    throw unknownReference(choice.reference, names);
  }
  const search = createSearch(files, choice.platform, limits);
  const found = new Map<Digest, Descriptor>();
  for (const descriptor of choice.reference === undefined ? manifests : named) {
    const manifest = search.find(descriptor, 1);
    // One image under two names is one image.
    if (manifest !== undefined) found.set(manifest.digest, manifest);
  }
  const [first, second] = found.values();
  if (first === undefined) throw wrongPlatform(search.offered, choice.platform);
  if (second !== undefined) throw ambiguous(names);
  return first;
}

function nameOf({ annotations, digest }: Descriptor): string {
  const named = NAME_ANNOTATIONS.map((key) => annotations?.[key]).find(
    (name) => name !== undefined,
  );
  return named === undefined ? digest : shown(named);
}

/** Looks below indexes for the first manifest of the wanted platform. */
function createSearch(files: ImageFiles, platform: Platform, limits: ImportLimits) {
  const offered: Platform[] = [];
  let looked = 0;

  const find = (descriptor: Descriptor, depth: number): Descriptor | undefined => {
    looked += 1;
    if (looked > limits.imageManifestsMax) {
      const message = `the image index names more than ${limits.imageManifestsMax} manifests`;
      throw new DsecError('import-limit', message);
    }
    if (isManifest(descriptor)) {
      // Without a platform here the configuration will tell.
      if (!descriptor.platform || matchesPlatform(descriptor.platform, platform)) return descriptor;
      offered.push(descriptor.platform);
      return undefined;
    }
    if (!isIndex(descriptor)) throw badType(descriptor);
    if (depth >= INDEX_DEPTH_MAX) {
      throw new DsecError('import-invalid', 'the image index is nested too deep');
    }
    const bytes = readBlob(files, descriptor, limits);
    const { manifests } = parseDocument(bytes, IndexSchema, 'nested index');
    for (const each of manifests) {
      const found = find(each, depth + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return { find, offered };
}

function badType({ mediaType }: Descriptor): DsecError {
  return new DsecError('import-invalid', `the media type ${shown(mediaType)} cannot be imported`);
}
