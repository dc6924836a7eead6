/**
 * Entry of a worker process: takes one job from its parent, does it, answers, ends. See
 * `worker-client.ts`.
 */
import { constants, setPriority } from 'node:os';
import { prctl } from '@dsec/linux';
import { asDsecError, assertNever, toErrorBody } from '@dsec/std';
import type { LayerProgress } from './layer-progress.ts';
import type { WorkerJob, WorkerMessage, WorkerResults } from './worker-job.ts';

const PR_SET_PDEATHSIG = 1;
const PROGRESS_INTERVAL_MS = 100;

/**
 * Each job loads only what it needs: a layer is prepared before its first mount, and somebody waits for
 * that.
 */
async function run(job: WorkerJob): Promise<WorkerResults[keyof WorkerResults]> {
  const report = createReporter();
  switch (job.type) {
    case 'prepare': {
      const { prepareNodeMetadata } = await import('./node-metadata.ts');
      await prepareNodeMetadata(job);
      return null;
    }
    case 'import': {
      yieldToSandboxes();
      const { runImport } = await import('./import-job.ts');
      return runImport(job, report);
    }
    case 'verify': {
      yieldToSandboxes();
      const { verifyStoredLayer } = await import('./verify-job.ts');
      return verifyStoredLayer({ root: job.storeRoot }, job.layerId, report);
    }
    default:
      return assertNever(job);
  }
}

/** Builds and checks take what is left over; a sandbox is waiting for a layer that is prepared. */
function yieldToSandboxes(): void {
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
}

function createReporter(): (progress: LayerProgress) => void {
  let reportedMs = 0;
  return (progress) => {
    const nowMs = performance.now();
    if (nowMs - reportedMs < PROGRESS_INTERVAL_MS) return;
    reportedMs = nowMs;
    process.send?.({ type: 'progress', progress } satisfies WorkerMessage);
  };
}

/** Resolves when the message is out, or when there is nobody to send it to. */
function send(message: WorkerMessage): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined) return resolve();
    process.send(message, undefined, undefined, () => resolve());
  });
}

/** A worker without its parent would do work that nobody waits for, and hold its stage meanwhile. */
function endWithParent(): void {
  prctl(PR_SET_PDEATHSIG, constants.signals.SIGKILL);
  process.on('disconnect', () => process.exit(1));
  // The parent may have died before the kernel knew what to do then.
  if (!process.connected) process.exit(1);
}

endWithParent();
process.once('message', (job: WorkerJob) => {
  run(job)
    .then(
      (result) => send({ type: 'done', result }),
      (thrown) => send({ type: 'failed', error: toErrorBody(asDsecError(thrown)) }),
    )
    .finally(() => process.exit(0));
});
