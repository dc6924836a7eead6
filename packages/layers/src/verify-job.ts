import { type BlobIndex, openBlobIndex, treeDigestOfIndexes, type ValidLayer } from '@dsec/erofs';
import { asDsecError, type Digest, DsecError, type ErrorCode } from '@dsec/std';
import { promised, readBounded } from './durable-file.ts';
import type { LayerProgress } from './layer-progress.ts';
import type { LayerManifest } from './manifest.ts';
import { readMetadata, validateMetadata } from './node-metadata.ts';
import { INDEX_BYTES_MAX, verifyBlobData } from './published-blob.ts';
import { readManifest } from './store-directory.ts';
import { blobPaths, type LayerStore, layerPaths } from './store-layout.ts';

export interface VerifyProblem {
  readonly code: ErrorCode;
  readonly message: string;
}

export interface VerifyReport {
  readonly layerId: Digest;
  /** Metadata and data that were read and compared. */
  readonly checkedBytes: number;
  /** Empty when the layer is whole: at most one for the metadata, one for each blob and one for the tree. */
  readonly problems: readonly VerifyProblem[];
}

/** Reads a whole layer again and compares; see `verifyLayer`. Runs in a worker. */
export async function verifyStoredLayer(
  store: LayerStore,
  layerId: Digest,
  onProgress: (progress: LayerProgress) => void,
): Promise<VerifyReport> {
  const problems: VerifyProblem[] = [];
  /** Damage is noted and the rest looked at; anything else ends the verification. */
  const check = async <Result>(step: () => Promise<Result>): Promise<Result | undefined> => {
    try {
      return await step();
    } catch (thrown) {
      const { code, message } = asDsecError(thrown);
      const isDamage = code === 'data-loss' || code === 'layer-invalid';
      if (!isDamage) throw thrown;
      problems.push({ code, message });
      return undefined;
    }
  };

  const manifest = await readManifest(store, layerId);
  const counter = createCounter(manifest, onProgress);
  const layer = await check(() => verifyMetadata(store, manifest));
  counter.add(manifest.metaBytes);
  const indexes: BlobIndex[] = [];
  for (const device of manifest.devices) {
    const index = await check(() => verifyStoredBlob(store, device, counter));
    if (index !== undefined) indexes.push(index);
  }
  if (layer !== undefined && indexes.length === manifest.devices.length) {
    await check(async () => verifyTree(manifest, layer, indexes));
  }
  return { layerId, checkedBytes: counter.bytes, problems };
}

interface Counter {
  readonly bytes: number;
  add(bytes: number): void;
}

function createCounter(
  manifest: LayerManifest,
  onProgress: (progress: LayerProgress) => void,
): Counter {
  const bytesTotal = manifest.devices.reduce((sum, { bytes }) => sum + bytes, manifest.metaBytes);
  let bytes = 0;
  return {
    get bytes() {
      return bytes;
    },
    add(more) {
      bytes += more;
      onProgress({ entries: 0, bytes, bytesTotal });
    },
  };
}

async function verifyMetadata(store: LayerStore, manifest: LayerManifest): Promise<ValidLayer> {
  const meta = await readMetadata(layerPaths(store, manifest.layerId).meta, manifest);
  return validateMetadata(meta, manifest);
}

async function verifyStoredBlob(
  store: LayerStore,
  blob: { readonly blobId: Digest; readonly bytes: number },
  counter: Counter,
): Promise<BlobIndex> {
  const { index: path } = blobPaths(store, blob.blobId);
  const index = openBlobIndex(blob.blobId, await promised(readBounded(path, INDEX_BYTES_MAX)));
  await verifyBlobData(store, { ...blob, index }, (bytes) => counter.add(bytes));
  return index;
}

function verifyTree(
  manifest: LayerManifest,
  layer: ValidLayer,
  indexes: readonly BlobIndex[],
): void {
  const found = treeDigestOfIndexes(layer, indexes);
  if (found !== manifest.treeDigest) {
    throw new DsecError('data-loss', `the tree of ${manifest.layerId} has digest ${found}`);
  }
}
