/** How many sandboxes live on one node at a time, what each takes, and how fast they come and go. */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { DsecError, type ErrorCode, GIB, KIB, MIB } from '@dsec/std';
import { prepareBaseLayer } from './base-layer.ts';
import { type EdgeSession, openEdgeSession } from './edge/edge-session.ts';
import { MEMORY_KINDS, readMemory } from './memory.ts';
import {
  type BenchOptions,
  type BenchReport,
  describeMachine,
  type Metric,
  metric,
  percentile,
  upperOf,
} from './report.ts';
import { createSeries, type Series } from './series.ts';

const COUNT = 4000;
const COUNT_LARGE = 8192;
/** Minutes each, and the same thousands of times. */
const RUNS = 1;
const IN_FLIGHT = 16;
const HUNDRED = 100;
const SAMPLED = 200;
const LIMITS = {
  ...{ cpuMillicores: 1000, memoryBytes: 64 * MIB, pidsMax: 32, diskBytes: 16 * MIB },
  ...{ inodesMax: 4096, openFilesMax: 1024 },
};
/** More than one has ever taken, so that a run that begins also ends. */
const KIB_PER_SANDBOX_MAX = 2048;
const MEMORY_KEPT_BYTES = 2 * GIB;
const PID_MAX = '/proc/sys/kernel/pid_max';
const PID_MAX_MOST = 4_194_304;
const PIDS_PCT_MAX = 80;
/** What an edge has open for each, with what it has anyway. */
const DESCRIPTORS_PER_SANDBOX = 2;
const DESCRIPTORS_BASE = 256;

const GOALS: Readonly<Record<string, number>> = {
  'density.count': COUNT_LARGE,
  'density.last_over_first': 2,
  'density.leftovers': 0,
};
const SUMMARY: readonly string[] = [
  ...['kib_per_sandbox', 'last_over_first', 'teardown_per_s', 'leftovers', 'cpu_overcommit'],
];

export async function benchDensity(options: BenchOptions): Promise<BenchReport> {
  const { say, signal, runs = RUNS } = options;
  const machine = describeMachine();
  const base = await prepareBaseLayer(say);
  const restore = raisePidMax(options.count ?? COUNT_LARGE);
  const series = createSeries({});
  const notes: string[] = [];
  let largest = { count: 0, protections: [] as readonly string[], upper: 'none' };
  try {
    for (const count of options.count === undefined ? [COUNT, COUNT_LARGE] : [options.count]) {
      const reason = whyNot(count);
      if (reason !== undefined) {
        notes.push(`${count} were not tried: ${reason.code}: ${reason.message}`);
        say(notes.at(-1) ?? '');
        break;
      }
      const session = await openEdgeSession(base, signal, {
        limits: LIMITS,
        ...upperOf(options.upper),
      });
      largest = { ...session, count };
      try {
        for (let run = 1; run <= runs; run += 1) await measure(session, count, series, say);
      } finally {
        await session.close();
      }
    }
  } finally {
    restore();
  }
  signal.throwIfAborted();
  return {
    ...{ bench: 'density', machine, protections: largest.protections, upper: largest.upper },
    metrics: [...series.metrics(), ...summaryOf(series, largest.count)],
    notes: [
      `each with limits: ${JSON.stringify(LIMITS)}; ${IN_FLIGHT} in flight, both to start and to stop`,
      'KiB of a kind are the growth of that line of /proc/meminfo on the whole host, for each sandbox',
      ...notes,
    ],
  };
}

/** Whether so many would fit, before the first is made: a host that is full answers nobody. */
function whyNot(count: number): DsecError | undefined {
  const refuse = (code: ErrorCode, message: string, details: object) =>
    new DsecError(code, message, { details: { ...details } });
  const availableBytes = (readMemory().MemAvailable ?? 0) * KIB;
  const neededBytes = count * KIB_PER_SANDBOX_MAX * KIB + MEMORY_KEPT_BYTES;
  if (neededBytes > availableBytes) {
    const figures = `${Math.round(neededBytes / MIB)} MiB of ${Math.round(availableBytes / MIB)}`;
    return refuse('overloaded', `memory: they may need ${figures}`, { limit: 'memory' });
  }
  const pidMax = readPidMax();
  if (count * LIMITS.pidsMax > (pidMax * PIDS_PCT_MAX) / 100) {
    const needed = `${count} times ${LIMITS.pidsMax}`;
    return refuse('overloaded', `pid_max: ${needed} of ${pidMax}`, { limit: 'pids' });
  }
  const files = Number(
    /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1],
  );
  if (count * DESCRIPTORS_PER_SANDBOX + DESCRIPTORS_BASE > files) {
    return refuse('overloaded', `open files: this process may have ${files}`, { limit: 'files' });
  }
  return undefined;
}

const readPidMax = () => Number(readFileSync(PID_MAX, 'utf8'));

/** As the operator of such a node has to; put back at the end. A host that refuses is found by `whyNot`. */
function raisePidMax(count: number): () => void {
  const before = readPidMax();
  const needed = Math.ceil((count * LIMITS.pidsMax * 100) / PIDS_PCT_MAX);
  if (needed <= before) return () => undefined;
  try {
    writeFileSync(PID_MAX, `${PID_MAX_MOST}`);
  } catch {
    return () => undefined;
  }
  return () => writeFileSync(PID_MAX, `${before}`);
}

async function measure(
  { edge }: EdgeSession,
  count: number,
  series: Series,
  say: BenchOptions['say'],
): Promise<void> {
  const prefix = `density.n${count}`;
  const memoryBefore = readMemory();
  const before = await edge.call('cost', undefined);
  const started = await edge.call('grow', { count, inFlight: IN_FLIGHT });
  const after = await edge.call('cost', undefined);
  const memoryAfter = readMemory();
  say(`${started.length} sandboxes live after ${Math.round((started.at(-1) ?? 0) / 1000)} s`);

  const taken = (kind: string) => ((memoryAfter[kind] ?? 0) - (memoryBefore[kind] ?? 0)) / count;
  for (const [name, kind] of Object.entries(MEMORY_KINDS)) {
    series.add(`${prefix}.${name}.kib_per_sandbox`, taken(kind));
  }
  const edgeKib = (after.edgeRssBytes - before.edgeRssBytes) / KIB / count;
  series.add(`${prefix}.edge_rss.kib_per_sandbox`, edgeKib);
  series.add(`${prefix}.kib_per_sandbox`, -taken('MemAvailable'));
  const cpuMs = after.edgeMs + after.sandboxesMs - before.edgeMs - before.sandboxesMs;
  series.add(`${prefix}.create_cpu_ms_per_life`, cpuMs / count);
  addRates(series, prefix, started);

  const times = await edge.call('trueMs', { count: SAMPLED, sandboxes: SAMPLED });
  const sorted = [...times].sort((a, b) => a - b);
  for (const percent of [50, 99]) {
    series.add(`${prefix}.true_p${percent}_ms`, percentile(sorted, percent));
  }
  const stopped = await edge.call('shrink', undefined);
  say(`${stopped.length} sandboxes stopped after ${Math.round((stopped.at(-1) ?? 0) / 1000)} s`);
  series.add(`${prefix}.teardown_per_s`, (stopped.length * 1000) / (stopped.at(-1) ?? 1));
  await edge.call('settle', undefined);
  // `settle` has found nothing of them.
  series.add(`${prefix}.leftovers`, 0);
  series.add(`${prefix}.cpu_overcommit`, (count * LIMITS.cpuMillicores) / 1000 / cpus().length);
}

/** Sandboxes per second over the first and the last hundred. */
function hundreds(stamps: readonly number[]) {
  const some = Math.min(HUNDRED, Math.floor(stamps.length / 2));
  const firstMs = stamps[some - 1] ?? 0;
  const lastMs = (stamps.at(-1) ?? 0) - (stamps.at(-1 - some) ?? 0);
  return { firstPerS: (some * 1000) / firstMs, lastPerS: (some * 1000) / lastMs };
}

function addRates(series: Series, prefix: string, stamps: readonly number[]): void {
  const { firstPerS, lastPerS } = hundreds(stamps);
  series.add(`${prefix}.first_hundred_per_s`, firstPerS);
  series.add(`${prefix}.last_hundred_per_s`, lastPerS);
  series.add(`${prefix}.create_per_s`, (stamps.length * 1000) / (stamps.at(-1) ?? 1));
  series.add(`${prefix}.last_over_first`, firstPerS / lastPerS);
}

/** The figures of the largest number, by the names under which they are compared. */
function summaryOf(series: Series, count: number): Metric[] {
  const prefix = `density.n${count}.`;
  const figures = series.metrics().flatMap((figure) => {
    const name = figure.name.replace(prefix, '');
    if (name === figure.name || !SUMMARY.includes(name)) return [];
    const goal = GOALS[`density.${name}`];
    return [{ ...figure, name: `density.${name}`, ...(goal === undefined ? {} : { goal }) }];
  });
  return [metric('density.count', 'count', 'higher', [count], GOALS['density.count']), ...figures];
}
