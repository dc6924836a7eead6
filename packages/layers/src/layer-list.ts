import { asDsecError, DsecError } from '@dsec/std';
import { formatLayerRef, type LayerRef } from './layer-ref.ts';
import type { LayerManifest } from './manifest.ts';
import { findRef, listRefNames, type RefFilter, type RefRecord, resolveRef } from './ref-store.ts';
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

/** A name whose record or manifest is damaged: `error` is `data-loss`. */
export interface DamagedLayer {
  readonly ref: string;
  readonly error: DsecError;
}

/**
 * All named layers: by kind, then name, newest version first. Damaged ones stand among them, so that one
 * does not hide the others. Refs removed meanwhile are left out.
 */
export async function* listLayers(
  store: LayerStore,
  filter: RefFilter = {},
): AsyncGenerator<LayerDescription | DamagedLayer> {
  for await (const name of listRefNames(store, filter)) {
    const found = await describeName(store, name);
    if (found !== undefined) yield found;
  }
}

async function describeName(
  store: LayerStore,
  name: LayerRef,
): Promise<LayerDescription | DamagedLayer | undefined> {
  try {
    const record = await findRef(store, name);
    return record && (await describe(store, record));
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code !== 'data-loss') throw error;
    return { ref: formatLayerRef(name), error };
  }
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
