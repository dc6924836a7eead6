export {
  type BlobIndex,
  type ChunkPlace,
  type IndexedChunk,
  openBlobIndex,
  verifyBlob,
} from './blob-index.ts';
export { createFileBlobSink, type FileBlobSink, type PunchHole } from './blob-sink.ts';
export { createLayerBuilder, DEDUP_SOURCES_MAX } from './builder.ts';
export type { LayerDevice } from './encode.ts';
export {
  type ByteSource,
  DEVICES_MAX,
  type ErofsImage,
  fileSource,
  type ImageDevice,
  memorySource,
  openErofs,
  type SuperBlock,
} from './image.ts';
export {
  type ContentPart,
  type Extent,
  readContent,
  readExtents,
  readLink,
} from './image-content.ts';
export { type ImageEntry, readDirectory } from './image-directory.ts';
export { type ImageInode, readInode } from './image-inode.ts';
export { readXattrs } from './image-xattrs.ts';
export { treeDigestOfData, treeDigestOfIndexes } from './layer-digest.ts';
export { type MergedLayer, type MergeOptions, mergeLayers } from './merge.ts';
export * from './model.ts';
export { reencode } from './reencode.ts';
export { type ValidateContext, type ValidLayer, validateLayer } from './validate.ts';
export { type WalkedEntry, type WalkLimits, walkImage } from './walk.ts';
export { keepXattr, type XattrVerdict } from './xattr-policy.ts';
