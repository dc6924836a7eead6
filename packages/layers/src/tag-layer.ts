import { join } from 'node:path';
import type { Digest } from '@dsec/std';
import { createFile, syncFile } from './durable-file.ts';
import type { LayerRef } from './layer-ref.ts';
import { encodeRecord } from './record-file.ts';
import {
  commitRef,
  findRef,
  listRefs,
  prepareRef,
  type RefRecord,
  refRecordOf,
} from './ref-store.ts';
import { createStage, newStageName } from './stage.ts';
import { readManifest } from './store-directory.ts';
import { type LayerStore, stagesDirectory } from './store-layout.ts';

/**
 * Gives a layer another name, started as under the ones that it has in the same kind. A name that means the
 * layer already is fine, and keeps its owner; one that means another is `already-exists`. `not-found`
 * without such a layer. Of several who make a name at once, exactly one is its owner.
 */
export async function tagLayer(
  store: LayerStore,
  ref: LayerRef,
  layerId: Digest,
  owner?: string,
): Promise<RefRecord> {
  const { treeDigest } = await readManifest(store, layerId);
  const existing = await findRef(store, ref);
  if (existing?.layerId === layerId) return existing;
  const known = await findRecord(store, ref, layerId);
  const record = refRecordOf(ref, {
    ...{ layerId, treeDigest, createdAtMs: Date.now() },
    image: known?.image ?? null,
    source: known?.source ?? { kind: 'tag', digest: null },
    ...(owner === undefined ? {} : { owner }),
  });
  const stage = await createStage(stagesDirectory(store), newStageName());
  try {
    const path = join(stage.path, 'ref');
    await createFile(path, encodeRecord(record));
    await syncFile(path);
    await prepareRef(store, ref);
    return await commitRef(store, ref, { path, record });
  } finally {
    await stage.discard();
  }
}

async function findRecord(
  store: LayerStore,
  { kind }: LayerRef,
  layerId: Digest,
): Promise<RefRecord | undefined> {
  for await (const record of listRefs(store, { kind })) {
    if (record.layerId === layerId) return record;
  }
  return undefined;
}
