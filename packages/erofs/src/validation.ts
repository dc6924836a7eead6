import type { Claims } from './claims.ts';
import type { LayerDevice } from './encode.ts';
import type { FileKind } from './format.ts';
import type { ErofsImage } from './image.ts';
import type { ImageXattr } from './image-xattrs.ts';
import type { BuilderLimits } from './model.ts';

/** What is known about an image while it is being validated. */
export interface Validation {
  readonly bytes: Buffer;
  readonly image: ErofsImage;
  readonly claims: Claims;
  readonly limits: BuilderLimits;
  readonly devices: readonly LayerDevice[];
  readonly usedDevices: Set<number>;
  readonly sharedXattrs: Map<number, SharedXattr>;
  contentBytes: number;
  xattrBytes: number;
}

export interface SharedXattr {
  readonly xattr: ImageXattr;
  /** The kinds of inode that have been found to be allowed to carry it. */
  readonly allowedOn: Set<FileKind>;
}
