export type { DirectoryOptions } from './directory.ts';
export type { ImageMetadata } from './image-documents.ts';
export * from './import-source.ts';
export * from './limits.ts';
export type { OverlayXattrs } from './overlay-upper.ts';
export { type DetectOptions, detectSource, type SourceKind } from './source-kind.ts';
