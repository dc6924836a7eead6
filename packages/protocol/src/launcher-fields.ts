/** Fields that several of the launcher's messages have. */
import { KIB } from '@dsec/std';
import { listOf, message, path, string, u32 } from './wire-fields.ts';

export const LAYERS_MAX = 64;

export const objectName = (tag: number) => string(tag, { bytesMin: 1, bytesMax: 40 });
/** Below the state root: no leading slash, no `.` or `..` part. */
export const statePath = (tag: number) => path(tag, { bytesMin: 1, bytesMax: 512 });
/**
 * A digest, and for a mount of its own a dot and 16 hex digits: what has another mark is mounted apart, with
 * a page cache of its own.
 */
export const layerId = (tag: number) => string(tag, { bytesMin: 71, bytesMax: 88 });
export const shortText = (tag: number, bytesMax = 128) => string(tag, { bytesMin: 1, bytesMax });

export const objectKey = { name: objectName(1), generation: u32(2, { minimum: 1 }) };

export const Assignment = message('assignment', {
  /** A file name in a cgroup directory, or a sysctl with dots. */
  name: shortText(1),
  value: shortText(2, 256),
});
export const assignments = (tag: number) =>
  listOf(tag, Assignment, { itemsMax: 64, bytesMax: 16 * KIB });

/** A cgroup to join. The first is the life directory, in the hierarchy that can kill. */
export const Cgroup = message('cgroup', {
  /** `unified` for version 2, else the name of a version 1 controller. */
  hierarchy: shortText(1, 32),
  /** Below the edge's own cgroup. */
  directory: statePath(2),
  /** Written before anything joins. */
  settings: assignments(3),
});
