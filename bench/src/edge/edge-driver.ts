/** Drives an edge from inside its process, as an apiserver in the same process would. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Edge, KeyedContext, SandboxEntry } from '@dsec/edge';
import type { ExecSpec, SandboxCreate, SandboxLimits } from '@dsec/protocol';
import { parsePrincipalId, parseProjectId, systemRandom } from '@dsec/std';
import { sha256Of } from '@dsec/transport';
import { unifiedCgroup } from '../cgroups.ts';
import {
  type BurstResult,
  inLanes,
  type LifeTimes,
  type LivesResult,
  runBurst,
  runLives,
} from '../lives.ts';
import { until } from './edge-node.ts';
import { checkProtections } from './protections.ts';

export const PROJECT = parseProjectId('bench');
export const PRINCIPAL = parsePrincipalId('driver');
export const TRUE: ExecSpec = { argv: ['/bin/true'], waitMs: 60_000 };
const DIGEST = sha256Of('bench');
const STOP_IN_FLIGHT = 16;
const SLEEP: ExecSpec = { argv: ['/bin/sleep', '600'] };

export interface EdgeDriver {
  readonly commands: {
    lives(input: { readonly count: number; readonly inFlight: number }): Promise<LivesResult>;
    /** Sandboxes with these limits that all stay after their first command, until all are there. */
    burst(input: {
      readonly count: number;
      readonly inFlight: number;
      readonly limits: Partial<SandboxLimits>;
    }): Promise<BurstResult>;
    /** Of a new sandbox; it is stopped again. Throws when one is absent. */
    protections(): Promise<readonly string[]>;
    /** Makes sandboxes that stay; when each was ready, in milliseconds from now. */
    grow(input: { readonly count: number; readonly inFlight: number }): Promise<readonly number[]>;
    /** Stops all of them; when each was gone. */
    shrink(): Promise<readonly number[]>;
    /** The id of one that stays. */
    hold(): Promise<string>;
    /** Times of `true`, one after the other, in `sandboxes` of those that stay. */
    trueMs(input: {
      readonly count: number;
      readonly sandboxes: number;
    }): Promise<readonly number[]>;
    /** A program writes so much; resolves when it has been written, spooled and acknowledged. */
    stdout(input: StdoutInput): Promise<StdoutResult>;
  };
  /** In use by the last sandbox. */
  upperDriver(): string;
  stopAll(): Promise<void>;
}

export interface StdoutInput {
  readonly bytes: number;
  /** Kept of it. */
  readonly keptBytes: number;
}

export interface StdoutResult {
  readonly wallMs: number;
  readonly rssBeforeBytes: number;
  readonly rssAfterBytes: number;
  readonly rssPeakBytes: number;
}

export const writeBlocks = ({ bytes, keptBytes }: StdoutInput): ExecSpec => ({
  argv: ['/bin/dd', 'if=/dev/zero', 'bs=1M', `count=${bytes / 2 ** 20}`, 'status=none'],
  ...{ outputBytesMax: keptBytes, waitMs: 60_000 },
});

export function createEdgeDriver(
  edge: Edge,
  create: Pick<SandboxCreate, 'limits' | 'network'> & { readonly layers: readonly string[] },
  signal: AbortSignal,
): EdgeDriver {
  const held = createHeld(edge, { ...create, layers: [...create.layers] });
  const { add, release, all } = held;
  const shrink = (interrupted?: AbortSignal) => {
    const entries = all();
    const stop = (index: number) => release(entries[index] as SandboxEntry);
    return stamped(entries.length, STOP_IN_FLIGHT, stop, interrupted);
  };
  return {
    commands: {
      lives: (input) => runLives(input, () => live(edge, held), signal),
      burst: ({ limits, ...load }) => runBurst(load, () => startOne(edge, held, limits), signal),
      protections: async () => {
        const entry = await add();
        try {
          return checkProtections(await sample(edge, entry));
        } finally {
          await release(entry);
        }
      },
      grow: ({ count, inFlight }) =>
        stamped(count, inFlight, async () => void (await add()), signal),
      shrink: () => shrink(signal),
      hold: async () => (await add()).id,
      trueMs: ({ count, sandboxes }) => trueMs(edge, spread(all(), sandboxes), count, signal),
      stdout: (input) => writeMuch(edge, all().at(-1) as SandboxEntry, input),
    },
    upperDriver: held.upperDriver,
    stopAll: async () => void (await shrink()),
  };
}

/** Sandboxes that are there, in the order in which they came. */
interface Held {
  /** With the limits of all, unless others are named. */
  add(limits?: Partial<SandboxLimits>): Promise<SandboxEntry>;
  release(entry: SandboxEntry): Promise<void>;
  all(): readonly SandboxEntry[];
  upperDriver(): string;
}

function createHeld(edge: Edge, request: SandboxCreate): Held {
  const held = new Set<SandboxEntry>();
  let upper = 'none';
  return {
    async add(limits) {
      const asked = limits === undefined ? request : { ...request, limits };
      const entry = await edge.lifecycle.create(asked, contextOf());
      held.add(entry);
      upper = entry.runtime?.upperDriver ?? upper;
      return entry;
    },
    async release(entry) {
      await edge.lifecycle.stop(entry, contextOf());
      held.delete(entry);
    },
    all: () => [...held],
    upperDriver: () => upper,
  };
}

async function live(edge: Edge, { add, release }: Held): Promise<LifeTimes> {
  const started = performance.now();
  const entry = await add();
  const readyMs = performance.now() - started;
  await runTrue(edge, entry);
  const firstCommandMs = performance.now() - started;
  await release(entry);
  const stopMs = performance.now() - started - firstCommandMs;
  return { allocatedMs: entry.timings.allocatedMs, readyMs, firstCommandMs, stopMs };
}

/** Until its first command has come back; resolves with what stops it. */
async function startOne(
  edge: Edge,
  { add, release }: Held,
  limits: Partial<SandboxLimits>,
): Promise<() => Promise<void>> {
  const entry = await add(limits);
  await runTrue(edge, entry);
  return () => release(entry);
}

async function trueMs(
  edge: Edge,
  entries: readonly SandboxEntry[],
  count: number,
  signal: AbortSignal,
): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const started = performance.now();
    await runTrue(edge, entries[index % entries.length] as SandboxEntry);
    times.push(performance.now() - started);
    signal.throwIfAborted();
  }
  return times;
}

/** When each was done, in milliseconds from the start, in ascending order. */
async function stamped(
  count: number,
  inFlight: number,
  work: (index: number) => Promise<void>,
  signal?: AbortSignal,
): Promise<number[]> {
  const started = performance.now();
  const stamps: number[] = [];
  const one = async (index: number) => {
    await work(index);
    stamps.push(performance.now() - started);
  };
  await inLanes(count, inFlight, one, signal);
  return stamps;
}

/** `count` of them, evenly from first to last. */
function spread<T>(all: readonly T[], count: number): T[] {
  const most = Math.min(count, all.length);
  return Array.from({ length: most }, (_, i) => all[Math.floor((i * all.length) / most)] as T);
}

const RUN = Buffer.from(systemRandom.bytes(8)).toString('hex');
const NEVER = new AbortController().signal;
let requests = 0;

/** Of a new request; made with little, since its cost counts as the edge's. */
export function contextOf(): KeyedContext {
  requests += 1;
  const number = requests.toString(16).padStart(16, '0');
  return {
    caller: { project: PROJECT, principal: PRINCIPAL },
    signal: NEVER,
    traceparent: `00-${RUN}${number}-${number}-00`,
    idempotencyKey: `${RUN}${number}`,
    requestDigest: DIGEST,
  };
}

async function runTrue(edge: Edge, entry: SandboxEntry): Promise<void> {
  const { exec } = await edge.exec.execs.start(entry, TRUE, contextOf());
  if (exec.exit?.exitCode !== 0) throw new Error(`true: ${JSON.stringify(exec)}`);
}

async function sample(edge: Edge, entry: SandboxEntry) {
  const { exec } = await edge.exec.execs.start(entry, SLEEP, contextOf());
  const { id, generation } = entry.key;
  const group = join(unifiedCgroup(`dsec-${edge.state({ limit: 1 }).edge}`), `${id}-${generation}`);
  const agentPid = (entry.runtime as { readonly record: { readonly pid: number } }).record.pid;
  let commandPid = 0;
  await until('a command runs in the sampled sandbox', () => {
    const pids = processesOf(group).filter((pid) => commandOf(pid) === 'sleep');
    commandPid = pids[0] ?? 0;
    return commandPid !== 0;
  });
  if (exec.state === 'failed') throw new Error(`the sampled sandbox: ${JSON.stringify(exec)}`);
  const { slot, limits } = entry.plan;
  const upperDriver = entry.runtime?.upperDriver ?? 'none';
  const isLinked = entry.network !== undefined;
  return { agentPid, commandPid, slot, limits, upperDriver, isLinked };
}

/** Of a cgroup and those below it. */
function processesOf(group: string): number[] {
  const below = readdirSync(group, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const text = readFileSync(join(group, 'cgroup.procs'), 'utf8').trim();
  const own = text === '' ? [] : text.split('\n').map(Number);
  return [...own, ...below.flatMap(({ name }) => processesOf(join(group, name)))];
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}

async function writeMuch(
  edge: Edge,
  entry: SandboxEntry,
  input: StdoutInput,
): Promise<StdoutResult> {
  const rssBeforeBytes = process.memoryUsage.rss();
  let rssPeakBytes = rssBeforeBytes;
  const look = setInterval(() => {
    rssPeakBytes = Math.max(rssPeakBytes, process.memoryUsage.rss());
  }, 20);
  try {
    const started = performance.now();
    const { exec } = await edge.exec.execs.start(entry, writeBlocks(input), contextOf());
    const wallMs = performance.now() - started;
    if (exec.exit?.exitCode !== 0 || exec.stdout.totalBytes !== input.bytes) {
      throw new Error(`the program that writes much: ${JSON.stringify(exec)}`);
    }
    return { wallMs, rssBeforeBytes, rssAfterBytes: process.memoryUsage.rss(), rssPeakBytes };
  } finally {
    clearInterval(look);
  }
}
