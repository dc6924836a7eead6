import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { BLOCK_BYTES, type BuiltLayer } from '@dsec/erofs';
import { createDirectory, digestOf } from '../../src/durable-file.ts';
import { parseLayerRef } from '../../src/layer-ref.ts';
import { type Published, publishLayer, stagePaths } from '../../src/publish.ts';
import { type RefRecord, refRecordOf } from '../../src/ref-store.ts';
import type { ImageMetadata } from '../../src/sources/index.ts';
import { createStage, newStageName } from '../../src/stage.ts';
import { type LayerStore, stagesDirectory } from '../../src/store-layout.ts';

/**
 * A layer of one chunk that only its digests make look real: enough for everything that does not read
 * EROFS.
 */
export function fakeLayer(content: string): { readonly built: BuiltLayer; readonly data: Buffer } {
  const data = Buffer.alloc(BLOCK_BYTES);
  data.write(content);
  const index = Buffer.alloc(40);
  createHash('sha256').update(data).digest().copy(index);
  index.writeUInt32LE(1, 36);
  const blob = { blobId: digestOf(index), blocks: 1, index };
  const meta = Buffer.alloc(BLOCK_BYTES, content);
  const built: BuiltLayer = {
    meta,
    layerId: digestOf(meta),
    treeDigest: digestOf(Buffer.from(content)),
    blob,
    devices: [{ blobId: blob.blobId, blocks: 1 }],
    stats: {
      entries: 1,
      inodes: 1,
      contentBytes: content.length,
      holeBytes: 0,
      ownDuplicateBytes: 0,
      sharedBytes: 0,
      storedBytes: BLOCK_BYTES,
      droppedXattrs: 0,
    },
  };
  return { built, data };
}

export async function publishFake(
  store: LayerStore,
  ref: string,
  content: string,
  image: ImageMetadata | null = null,
): Promise<RefRecord> {
  return (await publishFakeLayer(store, ref, content, image)).record;
}

export async function publishFakeLayer(
  store: LayerStore,
  ref: string,
  content: string,
  image: ImageMetadata | null = null,
): Promise<Published> {
  const { built, data } = fakeLayer(content);
  const stage = await createStage(stagesDirectory(store), newStageName());
  try {
    const { blob } = stagePaths(stage);
    await createDirectory(blob.directory);
    await writeFile(blob.data, data, { mode: 0o444 });
    const parsed = parseLayerRef(ref);
    const record = refRecordOf(parsed, {
      layerId: built.layerId,
      treeDigest: built.treeDigest,
      image,
      source: { kind: 'test', digest: null },
      createdAtMs: 1,
    });
    return await publishLayer(store, { stage, built, ref: parsed, record });
  } finally {
    await stage.discard();
  }
}
