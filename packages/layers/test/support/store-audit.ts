import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Digest, digestOfHex } from '@dsec/std';
import { digestOf } from '../../src/durable-file.ts';
import { listRefs } from '../../src/ref-store.ts';
import { sweepStages } from '../../src/stage.ts';
import { checkBlobFile, readManifest } from '../../src/store-directory.ts';
import { blobPaths, type LayerStore, stagesDirectory } from '../../src/store-layout.ts';
import { verifyStoredLayer } from '../../src/verify-job.ts';

export interface StoreAudit {
  readonly layers: readonly Digest[];
  readonly blobs: readonly Digest[];
  readonly refs: readonly string[];
}

/**
 * Looks at everything in a store and throws unless it is whole: every layer verifies to the last byte,
 * every blob is what its name says, every ref names a layer. Blobs and layers that nothing names are
 * whole too; that is allowed.
 */
export async function auditStore(store: LayerStore): Promise<StoreAudit> {
  const idsIn = (name: string) =>
    readdirSync(join(store.root, name)).map((hex) => digestOfHex(hex));
  const layers = idsIn('layers');
  const blobs = idsIn('blobs');
  for (const layerId of layers) {
    const { problems } = await verifyStoredLayer(store, layerId, () => {});
    if (problems.length > 0) throw new Error(`${layerId}: ${JSON.stringify(problems)}`);
  }
  for (const blobId of blobs) await auditBlob(store, blobId);
  const refs: string[] = [];
  for await (const { ref, layerId } of listRefs(store)) {
    await readManifest(store, layerId);
    refs.push(ref);
  }
  return { layers, blobs, refs };
}

async function auditBlob(store: LayerStore, blobId: Digest): Promise<void> {
  const { index: path } = blobPaths(store, blobId);
  const index = readFileSync(path);
  if (digestOf(index) !== blobId) throw new Error(`blob ${blobId} has another index`);
  let blocks = 0;
  for (let at = 0; at < index.length; at += 40) {
    blocks = Math.max(blocks, index.readUInt32LE(at + 32) + index.readUInt32LE(at + 36));
  }
  await checkBlobFile(store, { blobId, bytes: blocks * 4096 });
}

/** Sweeps until no stage is left. Owners that were killed a moment ago may still be dying. */
export async function sweepAll(store: LayerStore): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    await sweepStages(stagesDirectory(store), { ageMs: 0 });
    if (readdirSync(stagesDirectory(store)).length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`stages stay: ${readdirSync(stagesDirectory(store)).join(' ')}`);
}
