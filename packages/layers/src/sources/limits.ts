import type { BuilderLimits } from '@dsec/erofs';
import { GIB, KIB, MIB } from '@dsec/std';

/** What an import may take. One record for the source and for the builder; every excess is `import-limit`. */
export interface ImportLimits extends BuilderLimits {
  /** Headers of an archive, extended ones and those that replace or remove earlier entries included. */
  readonly headersMax: number;
  /** Bytes of an archive after decompression. */
  readonly streamBytesMax: number;
  /** Bytes that one compressed byte may become, once `expansionFreeBytes` have come out. */
  readonly expansionMax: number;
  readonly expansionFreeBytes: number;
  /** Memory that a zstd frame may ask for its window. */
  readonly zstdWindowBytesMax: number;
  /** A member's path. Directories are walked by descriptor and know only `depthMax`. */
  readonly pathBytesMax: number;
  /** The records before one member; also all global records of an archive together. */
  readonly paxBytesMax: number;
  /** Pieces of one sparse member. */
  readonly sparsePiecesMax: number;
  /** An image's index, manifest or configuration, each. */
  readonly imageDocumentBytesMax: number;
  /** Manifests and indexes looked at while an image is chosen. */
  readonly imageManifestsMax: number;
  readonly imageLayersMax: number;
  /** Members of an archive that holds an image (blobs and documents, not the image's own files). */
  readonly imageArchiveMembersMax: number;
  /** What is kept of an image's configuration: environment, command, user, directory. */
  readonly imageMetadataBytesMax: number;
}

/**
 * Above most images that people publish, and low enough that a hostile one ends early and in less than
 * 256 MiB of memory, importing process and decoder together: Node takes 60, `memoryBytesMax` is for the
 * tree, and then comes either the decoder with its window or the encoded metadata. `expansionMax`: software
 * packs 2 to 20 times, and deflate cannot pass 1,032, so a limit above that would never meet a gzip bomb.
 * `zstdWindowBytesMax` is eight times the default of `zstd -19`, and half of what `--ultra -22` and `--long`
 * ask for.
 */
export const IMPORT_LIMITS_DEFAULT: ImportLimits = {
  entriesMax: 200_000,
  contentBytesMax: 128 * GIB,
  fileBytesMax: 64 * GIB,
  depthMax: 1024,
  xattrBytesPerInodeMax: 64 * KIB,
  xattrBytesMax: 32 * MIB,
  metaBytesMax: 48 * MIB,
  memoryBytesMax: 96 * MIB,
  headersMax: 2_000_000,
  streamBytesMax: 128 * GIB,
  expansionMax: 256,
  expansionFreeBytes: 64 * MIB,
  zstdWindowBytesMax: 64 * MIB,
  pathBytesMax: 4096,
  paxBytesMax: MIB,
  sparsePiecesMax: 262_144,
  imageDocumentBytesMax: 4 * MIB,
  imageManifestsMax: 64,
  imageLayersMax: 512,
  imageArchiveMembersMax: 10_000,
  imageMetadataBytesMax: 128 * KIB,
};
