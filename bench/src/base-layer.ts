/** The base that all contestants share: a root of this distribution as a layer, imported once and kept. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeDistributionBase } from '@dsec/dsec';
import {
  createLayerStore,
  findRef,
  importLayer,
  type LayerStore,
  openLayerStore,
  parseLayerRef,
  readManifest,
  resolveRef,
} from '@dsec/layers';

export const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
export const CACHE = join(REPOSITORY, '.cache/bench');
export const BASE_REF = 'base/bench:1.0.0';
const STORE = join(CACHE, 'store');

export interface BaseLayer {
  readonly storeRoot: string;
  readonly ref: string;
  readonly layerId: string;
  /** Its files, for peers to mount. */
  readonly metaPath: string;
  readonly devices: readonly string[];
}

/** Makes it when the cache does not have it: a minute or two. */
export async function prepareBaseLayer(say: (line: string) => void): Promise<BaseLayer> {
  mkdirSync(CACHE, { recursive: true });
  const store = existsSync(STORE) ? await openLayerStore(STORE) : await createLayerStore(STORE);
  if ((await findRef(store, parseLayerRef(BASE_REF))) === undefined) {
    say('making the base layer: a root of this distribution (once, a minute or two)');
    const { tarPath } = await makeDistributionBase(CACHE);
    const source = { kind: 'tar', path: tarPath } as const;
    await importLayer({ store, kind: 'base', name: 'bench', version: '1.0.0', source });
  }
  const { layerId } = await resolveRef(store, BASE_REF);
  return { storeRoot: store.root, ref: BASE_REF, layerId, ...(await filesOf(store, layerId)) };
}

async function filesOf(store: LayerStore, layerId: Parameters<typeof readManifest>[1]) {
  const { devices } = await readManifest(store, layerId);
  const hex = (digest: string) => digest.slice('sha256:'.length);
  return {
    metaPath: join(store.root, 'layers', hex(layerId), 'meta.erofs'),
    devices: devices.map(({ blobId }) => join(store.root, 'blobs', hex(blobId), 'data')),
  };
}
