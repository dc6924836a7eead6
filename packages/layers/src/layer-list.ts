import { asDsecError, DsecError } from '@dsec/std';
import type { LayerManifest } from './manifest.ts';
import { listRefs, type RefFilter, type RefRecord, resolveRef } from './ref-store.ts';
import { readManifest } from './store-directory.ts';
import type { LayerStore } from './store-layout.ts';

/** A named layer with what is known of it. */
export interface LayerDescription {
  readonly record: RefRecord;
  readonly manifest: LayerManifest;
  /** All data blobs together; other layers may use the same ones. */
  readonly dataBytes: number;
}

/**
 * The layer that a ref or floating selector means. `not-found`; `data-loss` when the ref names an absent
 * layer.
 */
export async function showLayer(store: LayerStore, ref: string): Promise<LayerDescription> {
  return describe(store, await resolveRef(store, ref));
}

/** All named layers: by kind, then name, newest version first. */
export async function* listLayers(
  store: LayerStore,
  filter: RefFilter = {},
): AsyncGenerator<LayerDescription> {
  for await (const record of listRefs(store, filter)) yield describe(store, record);
}

async function describe(store: LayerStore, record: RefRecord): Promise<LayerDescription> {
  const manifest = await readManifest(store, record.layerId).catch((thrown) => {
    const error = asDsecError(thrown);
    if (error.code !== 'not-found') throw error;
    throw new DsecError('data-loss', `${record.ref}: ${error.message}`, { cause: thrown });
  });
  const dataBytes = manifest.devices.reduce((sum, { bytes }) => sum + bytes, 0);
  return { record, manifest, dataBytes };
}
