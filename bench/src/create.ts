/**
 * From a request to create until `true` has come back, and back to nothing: at the edge with every
 * protection on, and by peers on the same base in the same run.
 */
import { prepareBaseLayer } from './base-layer.ts';
import { costPerLife, type EdgeSession, openEdgeSession } from './edge/edge-session.ts';
import {
  type BurstResult,
  type LivesResult,
  ratePerSecond,
  runLives,
  timePercentile,
} from './lives.ts';
import { openPeersSession, type PeersSession } from './peers/peers-session.ts';
import { type BenchOptions, type BenchReport, describeMachine, RUNS, upperOf } from './report.ts';
import { measureSdkCreate, SDK_GOALS, SDK_NOTE } from './sdk/measure-sdk.ts';
import { createSeries, type Series } from './series.ts';

const COUNT = 1000;
const IN_FLIGHT = [1, 16, 64];
/** Peers are slower by far: so many of them say as much. */
const PEER_SHARE = 5;

/**
 * So that 64 fit a `kernel.pid_max` of 32,768: what sandboxes may have counts against it. All else is the
 * node's default.
 */
const LIMITS = { pidsMax: 256 };
/** In flight of those that stay until all are there; so that 1,000 of them fit the same `kernel.pid_max`. */
const BURST = { inFlight: 16, limits: { pidsMax: 24 } };

const GOALS = {
  'create.edge.k1.first_command_p50_ms': 6,
  'create.edge.k16.rate_per_s': 500,
  'create.edge.k16.start_rate_per_s': 500,
  'create.cpu_ms_per_life': 4,
  'create.leftovers': 0,
  ...SDK_GOALS.create,
};

export async function benchCreate(options: BenchOptions): Promise<BenchReport> {
  const { runs = RUNS, say, signal, count = COUNT, upper } = options;
  const machine = describeMachine();
  const base = await prepareBaseLayer(say);
  const series = createSeries(GOALS);
  const session = await openEdgeSession(base, signal, { limits: LIMITS, ...upperOf(upper) });
  const notes: string[] = [];
  try {
    const peers = await openPeersSession(base, signal);
    try {
      notes.push(...peers.notes);
      for (let run = 1; run <= runs && !signal.aborted; run += 1) {
        for (const inFlight of IN_FLIGHT) {
          await measureEdge(session, { count, inFlight }, series);
          await measureHttp(session, { count, inFlight }, series, signal);
          await measurePeers(peers, { count: Math.ceil(count / PEER_SHARE), inFlight }, series);
        }
        await measureBursts(session, peers, count, series);
        say(`round ${run} of ${runs} done`);
      }
    } finally {
      await peers.close();
    }
  } finally {
    await session.close();
  }
  signal.throwIfAborted();
  const loads = IN_FLIGHT.map((inFlight) => ({ count, inFlight }));
  await measureSdkCreate(base, LIMITS, loads, series, options);
  signal.throwIfAborted();
  series.add('create.leftovers', 0);
  return {
    bench: 'create',
    machine,
    protections: session.protections,
    upper: session.upper,
    metrics: series.metrics(),
    notes: [
      `${count} lives at each number in flight, ${Math.ceil(count / PEER_SHARE)} of each peer`,
      'the base is a root of this distribution; each has 2 CPUs, 1 GiB of memory and 256 processes',
      `start_rate: those of a burst stay until all are there, ${BURST.limits.pidsMax} processes each ` +
        '(not of peers), so that 1,000 fit',
      'edge: the driver calls the services in the process of the edge; edge_http: it is another process, ' +
        'over a unix socket, with a signed ticket for each request',
      SDK_NOTE,
      'CPU is of edge (with the driver), launcher, agents, commands and the ends of all, as the ' +
        "kernel counts it by process and cgroup, without its own threads; peers' is counted alike",
      'peers have limits by cgroups (not bubblewrap), no user namespace and no system call filter',
      ...notes,
    ],
  };
}

interface Load {
  readonly count: number;
  readonly inFlight: number;
}

async function measureEdge({ edge }: EdgeSession, load: Load, series: Series): Promise<void> {
  const prefix = `create.edge.k${load.inFlight}`;
  const pooledBefore = await edge.call('pooledCgroups', undefined);
  const before = await edge.call('cost', undefined);
  const result = await edge.call('lives', load);
  await edge.call('settle', undefined);
  const cost = costPerLife(before, await edge.call('cost', undefined), load.count);
  addLives(series, prefix, result);
  series.add(`${prefix}.cpu_ms_per_life`, cost.allMs);
  series.add(`${prefix}.cpu_of_edge_ms_per_life`, cost.edgeMs);
  series.add(`${prefix}.cpu_of_sandbox_ms_per_life`, cost.sandboxMs);
  series.add(`${prefix}.before.pooled_cgroups`, pooledBefore);
  series.add(`${prefix}.after.pooled_cgroups`, await edge.call('pooledCgroups', undefined));
  if (load.inFlight === 16) series.add('create.cpu_ms_per_life', cost.allMs);
}

async function measureHttp(
  { edge, client }: EdgeSession,
  load: Load,
  series: Series,
  signal: AbortSignal,
): Promise<void> {
  const prefix = `create.edge_http.k${load.inFlight}`;
  const before = await edge.call('cost', undefined);
  const result = await runLives(load, client.live, signal);
  await edge.call('settle', undefined);
  const cost = costPerLife(before, await edge.call('cost', undefined), load.count);
  addLives(series, prefix, result);
  series.add(`${prefix}.cpu_ms_per_life`, cost.allMs);
}

async function measurePeers(session: PeersSession, load: Load, series: Series): Promise<void> {
  for (const peer of session.names) {
    const prefix = `create.peer.${peer}.k${load.inFlight}`;
    const before = session.cpuMs();
    const result = await session.peers.call('lives', { peer, ...load });
    addLives(series, prefix, result);
    series.add(`${prefix}.cpu_ms_per_life`, (session.cpuMs() - before) / load.count);
  }
}

/** Those that start and stay until all are there, and then go. */
async function measureBursts(
  { edge }: EdgeSession,
  session: PeersSession,
  count: number,
  series: Series,
): Promise<void> {
  const prefix = `create.edge.k${BURST.inFlight}`;
  addBurst(series, prefix, await edge.call('burst', { count, ...BURST }));
  await edge.call('settle', undefined);
  const load = { count: Math.ceil(count / PEER_SHARE), inFlight: BURST.inFlight };
  for (const peer of session.names) {
    const result = await session.peers.call('burst', { peer, ...load });
    if (result !== undefined) addBurst(series, `create.peer.${peer}.k${load.inFlight}`, result);
  }
}

function addBurst(series: Series, prefix: string, result: BurstResult): void {
  const { count, startMs, removalMs } = result;
  series.add(`${prefix}.start_rate_per_s`, (count * 1000) / startMs);
  series.add(`${prefix}.removal_rate_per_s`, (count * 1000) / removalMs);
}

function addLives(series: Series, prefix: string, result: LivesResult): void {
  series.add(`${prefix}.rate_per_s`, ratePerSecond(result));
  const times = [
    ['allocate', 'allocatedMs'],
    ['ready', 'readyMs'],
    ['first_command', 'firstCommandMs'],
    ['stop', 'stopMs'],
  ] as const;
  for (const [name, time] of times) {
    for (const percent of [50, 95, 99]) {
      series.add(`${prefix}.${name}_p${percent}_ms`, timePercentile(result, time, percent));
    }
  }
}
