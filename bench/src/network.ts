/** Networks of sandboxes: what rules cost when they are made and when they are used. */
import { formatBytes, MIB } from '@dsec/std';
import { prepareBaseLayer } from './base-layer.ts';
import { type EdgeSession, openEdgeSession } from './edge/edge-session.ts';
import {
  type BenchOptions,
  type BenchReport,
  describeMachine,
  percentile,
  RUNS,
  upperOf,
} from './report.ts';
import { createSeries, formOfName, type Series } from './series.ts';

const COUNT = 200;
const IN_FLIGHT = 8;
const RULES = [1, 10, 1_000] as const;
const CHANGES = 20;
/** Below the rate at which one sandbox may open connections. */
const CONNECTIONS = 100;
const DOWNLOAD_BYTES = 256 * MIB;

const GOALS = { 'network.create_share_pct': 80 };

const formOf = (name: string) =>
  name.endsWith('share_pct') ? { unit: '%', better: 'higher' as const } : formOfName(name);

export async function benchNetwork(options: BenchOptions): Promise<BenchReport> {
  const { runs = RUNS, say, signal, count = COUNT, upper } = options;
  const machine = describeMachine();
  const base = await prepareBaseLayer(say);
  const series = createSeries(GOALS, formOf);
  const uppers = upperOf(upper);
  const plain = await openEdgeSession(base, signal, uppers);
  try {
    const filtered = await openEdgeSession(base, signal, { ...uppers, network: 'filtered' });
    try {
      for (let run = 0; run <= runs && !signal.aborted; run += 1) {
        const counted = run === 0 ? createSeries({}, formOf) : series;
        await measureCreates(plain, filtered, count, counted);
        await measureUse(filtered, 'filtered', counted);
        say(run === 0 ? 'warm-up done' : `round ${run} of ${runs} done`);
      }
    } finally {
      await filtered.close();
    }
    signal.throwIfAborted();
    const unfiltered = await openEdgeSession(base, signal, { ...uppers, network: 'unfiltered' });
    try {
      await measureUse(unfiltered, 'unfiltered', createSeries({}, formOf));
      for (let run = 1; run <= runs && !signal.aborted; run += 1) {
        await measureUse(unfiltered, 'unfiltered', series);
      }
    } finally {
      await unfiltered.close();
    }
    signal.throwIfAborted();
    return {
      ...{ bench: 'network', machine, protections: plain.protections, upper: plain.upper },
      metrics: series.metrics(),
      notes: [
        `create: ${count} lives, ${IN_FLIGHT} at a time, with link, proxies and packet filter, and without`,
        `change: all rules of a sandbox replaced, durable, ${CHANGES} times`,
        `connect: ${CONNECTIONS} times from bash to the egress proxy, less an empty loop`,
        `download: ${formatBytes(DOWNLOAD_BYTES)} of plain HTTP through DNS and egress proxy, read by cat`,
      ],
    };
  } finally {
    await plain.close();
  }
}

/** One after the other in each round, so that the machine is the same for both. */
async function measureCreates(
  plain: EdgeSession,
  networked: EdgeSession,
  count: number,
  series: Series,
): Promise<void> {
  const load = { count, inFlight: IN_FLIGHT };
  const without = await plain.edge.call('lives', load);
  const withNetwork = await networked.edge.call('lives', load);
  const rates = [without, withNetwork].map(({ wallMs }) => (count / wallMs) * 1000);
  const [alone = 0, linked = 0] = rates;
  series.add('network.create_without_per_s', alone);
  series.add('network.create_with_per_s', linked);
  series.add('network.create_share_pct', (100 * linked) / alone);
}

async function measureUse({ edge }: EdgeSession, kind: string, series: Series): Promise<void> {
  for (const rules of RULES) {
    const times = [...(await edge.call('changeMs', { rules, count: CHANGES }))].sort(
      (a, b) => a - b,
    );
    series.add(`network.${kind}.change_${rules}_rules_p50_ms`, percentile(times, 50));
    const connectMs = await edge.call('connectMs', { rules, count: CONNECTIONS });
    series.add(`network.${kind}.connect_${rules}_rules_ms`, connectMs);
  }
  const wallMs = await edge.call('downloadMs', { bytes: DOWNLOAD_BYTES });
  series.add(`network.${kind}.download_mb_per_s`, DOWNLOAD_BYTES / 1e6 / (wallMs / 1000));
}
