import type { Digest } from '@dsec/std';
import type { LayerProgress } from './layer-progress.ts';
import type { LayerStore } from './store-layout.ts';
import type { VerifyReport } from './verify-job.ts';
import { runInWorker } from './worker-client.ts';

export interface VerifyOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: LayerProgress) => void;
}

/**
 * Reads a whole layer again and compares: metadata with its digest and the validator's rules, every chunk
 * of its blobs with its digest, the tree with the manifest's digest. Runs in a process of its own. What
 * is damaged is in the report; an error means that nothing could be said: `not-found`, `cancelled`,
 * `permission-denied`.
 */
export function verifyLayer(
  store: LayerStore,
  layerId: Digest,
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  return runInWorker({ type: 'verify', storeRoot: store.root, layerId }, options);
}
