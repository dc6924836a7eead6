export type { ByteSource } from './byte-source.ts';
export type { DirectoryOptions } from './directory.ts';
export type { ImageMetadata } from './image-documents.ts';
export * from './import-source.ts';
export * from './limits.ts';
export type { OverlayXattrs } from './overlay-upper.ts';
export { createPace, type Pace, type PaceOptions } from './pace.ts';
export { detectSource, type SourceKind } from './source-kind.ts';
export { importTar } from './tar.ts';
