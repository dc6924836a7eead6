import { MIB } from '@dsec/std';

/** A manifest or ref of more bytes is not one of ours. */
export const RECORD_BYTES_MAX = MIB;
/** Metadata of more bytes is neither written nor read: about 10 million entries. */
export const META_BYTES_MAX = 2048 * MIB;
/** The kernel's device table takes 65,535; a layer is compacted long before this. */
export const DEVICES_MAX = 256;
/** Raised with every change of the record's shape. */
export const MANIFEST_FORMAT = 1;
export const REF_FORMAT = 1;
