/** What a user sees: the same figures through SDK, apiserver and edge, each a process of its own. */
import { randomBytes } from 'node:crypto';
import { GIB, MIB } from '@dsec/std';
import type { BaseLayer } from '../base-layer.ts';
import { type LivesResult, ratePerSecond, timePercentile } from '../lives.ts';
import { type BenchOptions, percentile, RUNS } from '../report.ts';
import type { Series } from '../series.ts';
import { startWorker, type Worker } from '../worker/worker-link.ts';
import type { SdkCommands, SdkWorkerOptions } from './sdk-worker.ts';

type SdkSession = Worker<SdkCommands>;

export const SDK_GOALS = {
  create: { 'create.sdk.k1.first_command_p50_ms': 10 },
  exec: { 'exec.sdk.true_p50_ms': 2, 'exec.sdk.stdout_mb_per_s': 400 },
} as const;

export const SDK_NOTE =
  'sdk: the TypeScript SDK in a process of its own, over unix sockets to `dsec up`, whose apiserver and ' +
  'edge are processes of their own; writable layers as it makes them by itself';

const OUTPUT_BYTES = GIB;
const WARM_UP = 20;

interface Load {
  readonly count: number;
  readonly inFlight: number;
}

/** Lives at each number in flight, in rounds. */
export async function measureSdkCreate(
  base: BaseLayer,
  limits: SdkWorkerOptions['limits'],
  loads: readonly Load[],
  series: Series,
  options: Pick<BenchOptions, 'runs' | 'say' | 'signal'>,
): Promise<void> {
  await inRounds(base, limits, options, async (session) => {
    for (const load of loads) await measureLives(session, load, series);
  });
}

/** `true` so many times, and a GiB by each way to read it, in rounds. */
export async function measureSdkExec(
  base: BaseLayer,
  count: number,
  series: Series,
  options: Pick<BenchOptions, 'runs' | 'say' | 'signal'>,
): Promise<void> {
  await inRounds(base, {}, options, (session) => measureCommands(session, count, series));
}

async function inRounds(
  base: BaseLayer,
  limits: SdkWorkerOptions['limits'],
  { runs = RUNS, say, signal }: Pick<BenchOptions, 'runs' | 'say' | 'signal'>,
  round: (session: SdkSession) => Promise<void>,
): Promise<void> {
  const session = await openSdkSession(base, limits, signal);
  try {
    for (let run = 1; run <= runs && !signal.aborted; run += 1) {
      await round(session);
      say(`round ${run} of ${runs} through the SDK done`);
    }
  } finally {
    await session.close();
  }
}

/** It is warm: the layers are mounted, and each part has worked. */
async function openSdkSession(
  { storeRoot, ref }: BaseLayer,
  limits: SdkWorkerOptions['limits'],
  signal: AbortSignal,
): Promise<SdkSession> {
  const edgeId = `s${randomBytes(5).toString('hex')}`;
  const options: SdkWorkerOptions = { edgeId, storeRoot, layers: [ref], limits };
  const session = await startWorker<SdkCommands>('sdk', options, signal);
  try {
    await session.call('lives', { count: WARM_UP, inFlight: 2 });
    await session.call('trueMs', { count: WARM_UP });
    await session.call('settle', undefined);
    return session;
  } catch (thrown) {
    await session.close();
    throw thrown;
  }
}

async function measureLives(session: SdkSession, load: Load, series: Series): Promise<void> {
  const prefix = `create.sdk.k${load.inFlight}`;
  const before = await session.call('cost', undefined);
  const result: LivesResult = await session.call('lives', load);
  const after = await session.call('cost', undefined);
  await session.call('settle', undefined);
  series.add(`${prefix}.rate_per_s`, ratePerSecond(result));
  for (const name of ['ready', 'first_command'] as const) {
    const time = name === 'ready' ? 'readyMs' : 'firstCommandMs';
    for (const percent of [50, 95, 99]) {
      series.add(`${prefix}.${name}_p${percent}_ms`, timePercentile(result, time, percent));
    }
  }
  const shares = { client: 'clientMs', apiserver: 'apiserverMs', edge: 'edgeMs' } as const;
  for (const [part, key] of Object.entries(shares) as [string, keyof typeof after][]) {
    const ms = (after[key] - before[key]) / load.count;
    series.add(`${prefix}.cpu_of_${part}_ms_per_life`, ms);
  }
}

async function measureCommands(session: SdkSession, count: number, series: Series): Promise<void> {
  const times = [...(await session.call('trueMs', { count }))].sort((a, b) => a - b);
  for (const percent of [50, 95, 99]) {
    series.add(`exec.sdk.true_p${percent}_ms`, percentile(times, percent));
  }
  for (const by of ['output', 'stream'] as const) {
    const name = by === 'output' ? 'stdout' : 'stdout_attached';
    const before = await session.call('cost', undefined);
    const result = await session.call('stdout', { bytes: OUTPUT_BYTES, by });
    const after = await session.call('cost', undefined);
    series.add(`exec.sdk.${name}_mb_per_s`, OUTPUT_BYTES / 1e6 / (result.wallMs / 1000));
    series.add(`exec.sdk.${name}_cpu_of_client_ms`, after.clientMs - before.clientMs);
    series.add(`exec.sdk.${name}_cpu_of_apiserver_ms`, after.apiserverMs - before.apiserverMs);
    series.add(`exec.sdk.${name}_cpu_of_edge_ms`, after.edgeMs - before.edgeMs);
    series.add(`exec.sdk.${name}_client_peak_rss_mib`, result.clientRssBytes / MIB);
    series.add(`exec.sdk.${name}_apiserver_peak_rss_mib`, result.apiserverRssBytes / MIB);
    series.add(`exec.sdk.${name}_edge_peak_rss_mib`, result.edgeRssBytes / MIB);
  }
  await session.call('settle', undefined);
}
