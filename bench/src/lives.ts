/** Many lives at a time, of anything that lives: our sandboxes and those of peers alike. */
import { percentile } from './report.ts';

/** Milliseconds since the request, except `stopMs`. */
export interface LifeTimes {
  readonly allocatedMs?: number | undefined;
  readonly readyMs?: number | undefined;
  readonly firstCommandMs: number;
  /** From the request to stop until nothing is left. */
  readonly stopMs?: number | undefined;
}

export interface LivesResult {
  readonly count: number;
  readonly wallMs: number;
  readonly lives: readonly LifeTimes[];
}

/** Runs `count` lives, `inFlight` at a time. The first that fails ends it, when those under way are over. */
export async function runLives(
  { count, inFlight }: { readonly count: number; readonly inFlight: number },
  live: (index: number) => Promise<LifeTimes>,
  signal?: AbortSignal,
): Promise<LivesResult> {
  const lives: LifeTimes[] = [];
  const started = performance.now();
  await inLanes(count, inFlight, async (index) => void lives.push(await live(index)), signal);
  return { count, wallMs: performance.now() - started, lives };
}

/** Calls `work` with 0 to `count - 1`, `inFlight` at a time. */
export async function inLanes(
  count: number,
  inFlight: number,
  work: (index: number) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  let next = 0;
  let failure: { readonly thrown: unknown } | undefined;
  const lane = async () => {
    while (next < count && failure === undefined && !signal?.aborted) {
      next += 1;
      await work(next - 1).catch((thrown: unknown) => {
        failure ??= { thrown };
      });
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, inFlight) }, lane));
  if (failure !== undefined) throw failure.thrown;
  signal?.throwIfAborted();
}

/** Many that start and stay until all are there, and then go. */
export interface BurstResult {
  readonly count: number;
  readonly startMs: number;
  readonly removalMs: number;
}

/**
 * Starts `count` of them, `inFlight` at a time, and then removes them all in the same way; `start` gives
 * what removes it. When one fails, those that are there are removed all the same.
 */
export async function runBurst(
  { count, inFlight }: { readonly count: number; readonly inFlight: number },
  start: () => Promise<() => Promise<void>>,
  signal?: AbortSignal,
): Promise<BurstResult> {
  const there: (() => Promise<void>)[] = [];
  const began = performance.now();
  let startMs = 0;
  try {
    await inLanes(count, inFlight, async () => void there.push(await start()), signal);
  } finally {
    startMs = performance.now() - began;
    await inLanes(there.length, inFlight, async (index) => there[index]?.());
  }
  return { count, startMs, removalMs: performance.now() - began - startMs };
}

export const ratePerSecond = ({ count, wallMs }: LivesResult): number => (count * 1000) / wallMs;

/** A percentile of one of the times; undefined where lives of this kind do not have it. */
export function timePercentile(
  { lives }: LivesResult,
  time: keyof LifeTimes,
  percent: number,
): number | undefined {
  const values = lives.flatMap((life) => life[time] ?? []).sort((a, b) => a - b);
  return values.length === 0 ? undefined : percentile(values, percent);
}
