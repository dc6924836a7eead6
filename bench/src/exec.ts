/** Commands in a sandbox that runs: the shortest one, and one that writes a GiB. */
import { formatBytes, GIB, MIB, type SandboxId } from '@dsec/std';
import { prepareBaseLayer } from './base-layer.ts';
import { type EdgeSession, openEdgeSession } from './edge/edge-session.ts';
import { openPeersSession, type PeersSession } from './peers/peers-session.ts';
import {
  type BenchOptions,
  type BenchReport,
  describeMachine,
  percentile,
  RUNS,
  upperOf,
} from './report.ts';
import { measureSdkExec, SDK_GOALS, SDK_NOTE } from './sdk/measure-sdk.ts';
import { createSeries, type Series } from './series.ts';

const COUNT = 1000;
const PEER_SHARE = 10;
const OUTPUT_BYTES = GIB;
/** What an edge keeps of a command that does not say. */
const KEPT_BYTES = 4 * MIB;

const GOALS = {
  'exec.edge.true_p50_ms': 1,
  'exec.edge.stdout_mb_per_s': 800,
  'exec.edge.stdout_rss_growth_mib': 32,
  ...SDK_GOALS.exec,
};

export async function benchExec(options: BenchOptions): Promise<BenchReport> {
  const { runs = RUNS, say, signal, count = COUNT, upper } = options;
  const machine = describeMachine();
  const base = await prepareBaseLayer(say);
  const series = createSeries(GOALS);
  const session = await openEdgeSession(base, signal, upperOf(upper));
  const notes: string[] = [];
  try {
    const peers = await openPeersSession(base, signal);
    try {
      notes.push(...peers.notes);
      for (let run = 0; run <= runs && !signal.aborted; run += 1) {
        // The first round warms, as an edge that runs is warm.
        const counted = run === 0 ? createSeries({}) : series;
        await measureRound(session, count, counted);
        await measurePeers(peers, Math.ceil(count / PEER_SHARE), counted);
        say(run === 0 ? 'warm-up done' : `round ${run} of ${runs} done`);
      }
    } finally {
      await peers.close();
    }
  } finally {
    await session.close();
  }
  signal.throwIfAborted();
  await measureSdkExec(base, count, series, options);
  signal.throwIfAborted();
  return {
    bench: 'exec',
    machine,
    protections: session.protections,
    upper: session.upper,
    metrics: series.metrics(),
    notes: [
      `${count} times \`true\`, one after the other; ${formatBytes(OUTPUT_BYTES)} by dd in blocks of 1 MiB`,
      'stdout: from the request until the last byte is framed, spooled and acknowledged, ' +
        `${formatBytes(KEPT_BYTES)} of it kept; stdout_kept: all kept; edge_http: all kept, and read by a ` +
        'follower in another process from the beginning',
      SDK_NOTE,
      'sdk.stdout: by Command.output, over HTTP; stdout_attached: by Command.stream, over its WebSocket',
      ...notes,
    ],
  };
}

/** Each in a sandbox of its own, since the output that an edge keeps of one is limited. */
async function measureRound(
  { edge, client }: EdgeSession,
  count: number,
  series: Series,
): Promise<void> {
  const sandbox = (await edge.call('hold', undefined)) as SandboxId;
  addTimes(series, 'exec.edge', await edge.call('trueMs', { count, sandboxes: 1 }));
  const http: number[] = [];
  for (let index = 0; index < count; index += 1) http.push(await client.trueMs(sandbox));
  addTimes(series, 'exec.edge_http', http);

  const plain = { bytes: OUTPUT_BYTES, keptBytes: KEPT_BYTES };
  const kept = { bytes: OUTPUT_BYTES, keptBytes: OUTPUT_BYTES };
  const before = await edge.call('cost', undefined);
  const written = await edge.call('stdout', plain);
  const after = await edge.call('cost', undefined);
  series.add('exec.edge.stdout_mb_per_s', rate(written.wallMs));
  series.add('exec.edge.stdout_cpu_of_edge_ms', after.edgeMs - before.edgeMs);
  series.add('exec.edge.stdout_cpu_of_sandbox_ms', after.sandboxesMs - before.sandboxesMs);
  series.add('exec.edge.stdout_rss_before_mib', written.rssBeforeBytes / MIB);
  series.add('exec.edge.stdout_rss_after_mib', written.rssAfterBytes / MIB);
  series.add(
    'exec.edge.stdout_rss_growth_mib',
    (written.rssPeakBytes - written.rssBeforeBytes) / MIB,
  );
  series.add('exec.edge.stdout_kept_mb_per_s', rate((await edge.call('stdout', kept)).wallMs));
  series.add('exec.edge_http.stdout_mb_per_s', rate(await client.readStdoutMs(sandbox, kept)));
  await edge.call('shrink', undefined);
  await edge.call('settle', undefined);
}

const rate = (wallMs: number) => OUTPUT_BYTES / 1e6 / (wallMs / 1000);

async function measurePeers(session: PeersSession, count: number, series: Series): Promise<void> {
  for (const peer of session.names.filter((name) => name !== 'bubblewrap')) {
    addTimes(series, `exec.peer.${peer}`, await session.peers.call('trueMs', { peer, count }));
  }
}

function addTimes(series: Series, prefix: string, times: readonly number[]): void {
  const sorted = [...times].sort((a, b) => a - b);
  for (const percent of [50, 95, 99]) {
    series.add(`${prefix}.true_p${percent}_ms`, percentile(sorted, percent));
  }
}
