/** An edge for a benchmark and who calls it: what the scenarios share. */
import { randomBytes } from 'node:crypto';
import { type EdgeId, parseEdgeId, parseShardId, SECOND_MS, systemClock } from '@dsec/std';
import type { BaseLayer } from '../base-layer.ts';
import { startWorker, type Worker } from '../worker/worker-link.ts';
import { createEdgeClient, type EdgeClient, newTicketKeys } from './edge-client.ts';
import type { EdgeCommands, EdgeCost, EdgeWorkerOptions } from './edge-worker.ts';

export interface EdgeSession {
  readonly edge: Worker<EdgeCommands>;
  readonly client: EdgeClient;
  readonly upper: string;
  /** Read from a sampled sandbox. */
  readonly protections: readonly string[];
  /** Leftovers reject. */
  close(): Promise<void>;
}

export type EdgeSessionOptions = Pick<
  EdgeWorkerOptions,
  'limits' | 'admission' | 'upperDrivers' | 'network'
>;

/** A new edge refuses tickets from before its start, and a clock's skew beyond it. */
const SKEW_MS = 2 * SECOND_MS;
const SHARD = parseShardId('bench');

/** The sampled sandbox is also the warm-up: its layers are mounted from then on. */
export async function openEdgeSession(
  { storeRoot, ref }: BaseLayer,
  signal: AbortSignal,
  options: EdgeSessionOptions = {},
): Promise<EdgeSession> {
  const keys = newTicketKeys();
  const edgeId: EdgeId = parseEdgeId(`b${randomBytes(5).toString('hex')}`);
  const { publicKey, keyId } = keys;
  const worker: EdgeWorkerOptions = {
    ...{ edgeId, shardId: SHARD, storeRoot, layers: [ref], publicKey, keyId },
    ...options,
  };
  const edge = await startWorker<EdgeCommands>('edge', worker, signal);
  try {
    const protections = await edge.call('protections', undefined);
    const { socketPath, upper } = await edge.call('describe', undefined);
    await systemClock.sleep(SKEW_MS + SECOND_MS);
    const client = createEdgeClient({
      ...{ socketPath, edgeId, shardId: SHARD, layers: [ref], keys, limits: options.limits ?? {} },
    });
    const close = async () => {
      await client.close();
      await edge.close();
    };
    return { edge, client, upper, protections, close };
  } catch (thrown) {
    await edge.close();
    throw thrown;
  }
}

/** Processor time between two moments, for each of `count`. */
export function costPerLife(before: EdgeCost, after: EdgeCost, count: number) {
  const edgeMs = (after.edgeMs - before.edgeMs) / count;
  const sandboxMs = (after.sandboxesMs - before.sandboxesMs) / count;
  return { edgeMs, sandboxMs, allMs: edgeMs + sandboxMs };
}
