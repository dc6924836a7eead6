import type { Digest, ErrorBody } from '@dsec/std';
import type { ImportedLayer, ImportJob } from './import-job.ts';
import type { LayerProgress } from './layer-progress.ts';
import type { PrepareJob } from './node-metadata.ts';
import type { VerifyReport } from './verify-job.ts';

/** What a worker process can be asked. One job a process. */
export type WorkerJob =
  | ImportJob
  | PrepareJob
  | { readonly type: 'verify'; readonly storeRoot: string; readonly layerId: Digest };

export interface WorkerResults {
  readonly import: ImportedLayer;
  readonly verify: VerifyReport;
  readonly prepare: null;
}

export type WorkerMessage =
  | { readonly type: 'progress'; readonly progress: LayerProgress }
  | { readonly type: 'done'; readonly result: WorkerResults[keyof WorkerResults] }
  | { readonly type: 'failed'; readonly error: ErrorBody };
