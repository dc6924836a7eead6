import { createLayerBuilder } from '@dsec/erofs';
import { IMPORT_LIMITS_DEFAULT } from '@dsec/layers';
import { assert } from '@dsec/std';

/**
 * The smallest layer there is, metadata only: what the host probe mounts to see whether the kernel
 * takes our layers.
 */
export function makeProbeLayer(): Uint8Array {
  const builder = createLayerBuilder({
    blob: {
      append: () => assert(false, 'a layer without files has no data'),
      discard: () => undefined,
      flush: () => undefined,
    },
    whiteouts: 'apply',
    dedupSources: [],
    limits: IMPORT_LIMITS_DEFAULT,
  });
  const attributes = { mode: 0o755, uid: 0, gid: 0, mtimeSec: 0, mtimeNsec: 0, xattrs: new Map() };
  builder.directory('probe', attributes);
  return builder.finish().meta;
}
