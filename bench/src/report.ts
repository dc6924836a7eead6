import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import type { UpperDriver } from '@dsec/backend-container';

export interface BenchOptions {
  /** Counted runs of each contestant; default is the benchmark's own. */
  readonly runs?: number;
  /** How many of what the benchmark counts; default is the benchmark's own. */
  readonly count?: number;
  /** The driver of writable layers; default: in memory. */
  readonly upper?: UpperDriver;
  /** Ctrl-C. Whatever was made is undone before the benchmark rejects. */
  readonly signal: AbortSignal;
  /** Said on stderr while the benchmark runs. */
  say(line: string): void;
}

/** As the options of an edge have it. */
export const upperOf = (upper: UpperDriver | undefined) =>
  upper === undefined ? {} : { upperDrivers: [upper] };

/** Counted runs, where a benchmark has no reason for another number. */
export const RUNS = 5;

/** One figure of a benchmark. Names are dotted, lower case, with the unit last. */
export interface Metric {
  readonly name: string;
  /** The median of the runs. */
  readonly value: number;
  readonly unit: string;
  readonly better: 'higher' | 'lower';
  readonly goal?: number;
  readonly runs: number;
  readonly min: number;
  readonly max: number;
}

export interface BenchReport {
  readonly bench: string;
  readonly machine: Machine;
  /** Protections that were read from a sampled sandbox; empty where a benchmark starts none. */
  readonly protections: readonly string[];
  /** The upper driver in use, or `none`. */
  readonly upper: string;
  readonly metrics: readonly Metric[];
  /** What a reader must know to compare: versions of peers, sizes, caveats. */
  readonly notes: readonly string[];
}

export interface Machine {
  readonly cpu: string;
  readonly cpus: number;
  readonly memoryMib: number;
  readonly kernel: string;
  readonly distribution: string;
  readonly node: string;
  /** Load average over the last minute when the benchmark began. */
  readonly load1: number;
}

export function describeMachine(): Machine {
  const release_ = readFileSync('/etc/os-release', 'utf8');
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cpus: cpus().length,
    memoryMib: Math.round(totalmem() / 2 ** 20),
    kernel: release(),
    distribution: /^PRETTY_NAME="(.*)"$/m.exec(release_)?.[1] ?? 'unknown',
    node: process.version,
    load1: Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0]),
  };
}

/** A metric from the values of its runs: median, min and max. */
export function metric(
  name: string,
  unit: string,
  better: Metric['better'],
  values: readonly number[],
  goal?: number,
): Metric {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    name,
    value: round(percentile(sorted, 50)),
    unit,
    better,
    ...(goal === undefined ? {} : { goal }),
    runs: sorted.length,
    min: round(sorted[0] ?? Number.NaN),
    max: round(sorted.at(-1) ?? Number.NaN),
  };
}

/**
 * The nearest-rank percentile of values in ascending order; the 50th of an even count is the mean
 * of the middle two.
 */
export function percentile(sorted: readonly number[], percent: number): number {
  if (percent === 50 && sorted.length % 2 === 0 && sorted.length > 0) {
    const upper = sorted.length / 2;
    return ((sorted[upper - 1] ?? 0) + (sorted[upper] ?? 0)) / 2;
  }
  const rank = Math.max(1, Math.ceil((percent / 100) * sorted.length));
  return sorted[rank - 1] ?? Number.NaN;
}

/** Ratios of paired runs, so that a drift of the machine's speed cancels out. */
export function ratios(ours: readonly number[], theirs: readonly number[]): number[] {
  return ours.map((value, index) => value / (theirs[index] ?? Number.NaN));
}

export function renderReport(report: BenchReport): string {
  const { machine } = report;
  const lines = [
    `${report.bench}: ${machine.cpu}, ${machine.cpus} CPUs, ${machine.memoryMib} MiB, ` +
      `Linux ${machine.kernel}, ${machine.distribution}, Node ${machine.node}, load ${machine.load1}`,
    `upper: ${report.upper}; protections: ${report.protections.join(', ') || 'none (no sandbox runs)'}`,
    '',
    row('metric', 'median', 'min', 'max', 'runs', 'goal'),
  ];
  for (const m of report.metrics) {
    const sign = m.better === 'higher' ? '≥' : '≤';
    const goal = m.goal === undefined ? '' : `${sign} ${m.goal}${meets(m) ? '  met' : '  missed'}`;
    lines.push(row(m.name, show(m.value), show(m.min), show(m.max), String(m.runs), goal));
  }
  if (report.notes.length > 0) lines.push('', ...report.notes.map((note) => `- ${note}`));
  return `${lines.join('\n')}\n`;
}

function meets(m: Metric): boolean {
  if (m.goal === undefined) return true;
  return m.better === 'higher' ? m.value >= m.goal : m.value <= m.goal;
}

function row(
  name: string,
  median: string,
  min: string,
  max: string,
  runs: string,
  goal: string,
): string {
  const figures = [median, min, max].map((value) => value.padStart(10)).join('');
  return `${name.padEnd(46)}${figures}${runs.padStart(6)}  ${goal}`;
}

function show(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toPrecision(4);
}

function round(value: number): number {
  return Number(value.toPrecision(6));
}
