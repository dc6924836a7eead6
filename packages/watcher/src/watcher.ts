/**
 * The view of the fleet: each edge is asked what has changed, again and again, and all at once when somebody
 * needs to know it now. Nothing here is durable; a watcher that starts asks for everything.
 */
import type { EdgeState, EdgeStateQuery } from '@dsec/protocol';
import {
  asDsecError,
  type Clock,
  DsecError,
  type EdgeId,
  isEndState,
  MINUTE_MS,
  SECOND_MS,
} from '@dsec/std';
import type { Static } from 'typebox';

/** Asks one edge; its errors make the edge unhealthy and nothing else. */
export type StateReader = (
  edge: EdgeId,
  query: Static<typeof EdgeStateQuery>,
  signal: AbortSignal,
) => Promise<EdgeState>;

export interface WatcherOptions {
  readonly edges: readonly EdgeId[];
  readonly read: StateReader;
  readonly clock: Clock;
  readonly everyMs?: number;
  /** An edge that does not answer for so long is unhealthy. */
  readonly timeoutMs?: number;
  /** An edge has answered what it was asked at `askedMs` of the monotonic clock. */
  readonly onAnswer?: (edge: EdgeId, askedMs: number) => void;
  /** An edge became healthy, or stopped to be. */
  readonly onHealth?: (edge: EdgeId, error: DsecError | undefined) => void;
}

type ListedSandbox = EdgeState['sandboxes'][number];

export interface EdgeView {
  readonly edge: EdgeId;
  /** Of the last answer; `undefined` before the first. */
  readonly state: Omit<EdgeState, 'sandboxes' | 'full' | 'cursor'> | undefined;
  readonly sandboxes: ReadonlyMap<string, ListedSandbox>;
  /** Of them, those that have not ended. */
  readonly live: number;
  /** Why it is not healthy; `undefined` when it is. */
  readonly error: DsecError | undefined;
}

export interface Watcher {
  edge(edge: EdgeId): EdgeView | undefined;
  edges(): readonly EdgeView[];
  /**
   * Asks every edge anew, and resolves when each has answered or failed: what is shown then is not older than
   * the call. All who ask while edges are being asked share the next round.
   */
  refresh(): Promise<void>;
  close(): void;
}

const PAGE_MAX = 10_000;
/** Forgotten sandboxes are not told as changes: so often everything is asked for. */
const WHOLE_EVERY_MS = MINUTE_MS;

interface Watched {
  readonly edge: EdgeId;
  state: EdgeView['state'];
  sandboxes: Map<string, ListedSandbox>;
  live: number;
  error: DsecError | undefined;
  wholeMs: number;
}

export function createWatcher(options: WatcherOptions): Watcher {
  const { edges, clock, everyMs = SECOND_MS } = options;
  const views = new Map<EdgeId, Watched>(edges.map((edge) => [edge, freshView(edge)]));
  const closing = new AbortController();
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  const round = async () => {
    await Promise.all([...views.values()].map((view) => ask(view, options, closing.signal)));
  };
  /** One round at a time; who comes in the middle of one waits for the next. */
  const refresh = (): Promise<void> => {
    if (running === undefined) {
      running = round().finally(() => {
        running = undefined;
      });
      return running;
    }
    next ??= running.then(() => {
      next = undefined;
      return refresh();
    });
    return next;
  };
  const loop = async () => {
    while (!closing.signal.aborted) {
      await refresh();
      await clock.sleep(everyMs, closing.signal);
    }
  };
  loop().catch(() => undefined);

  return {
    edge: (edge) => views.get(edge),
    edges: () => [...views.values()],
    refresh,
    close: () => closing.abort(),
  };
}

function freshView(edge: EdgeId): Watched {
  return {
    ...{ edge, state: undefined, sandboxes: new Map(), live: 0 },
    error: new DsecError('unavailable', 'the edge was not asked yet'),
    wholeMs: Number.NEGATIVE_INFINITY,
  };
}

async function ask(view: Watched, options: WatcherOptions, closing: AbortSignal): Promise<void> {
  const { clock, timeoutMs = 5 * SECOND_MS, onAnswer, onHealth } = options;
  const before = view.error;
  const signal = AbortSignal.any([closing, AbortSignal.timeout(timeoutMs)]);
  try {
    const askedMs = clock.monotonicMs();
    await readAll(view, options, askedMs, signal);
    view.error = undefined;
    onAnswer?.(view.edge, askedMs);
  } catch (thrown) {
    if (closing.aborted) return;
    view.error = asDsecError(thrown);
    // It may come back as another one: then nothing of before holds.
    view.wholeMs = Number.NEGATIVE_INFINITY;
  }
  const isNews = (before === undefined) !== (view.error === undefined);
  if (isNews) onHealth?.(view.edge, view.error);
}

async function readAll(
  view: Watched,
  { read }: WatcherOptions,
  nowMs: number,
  signal: AbortSignal,
): Promise<void> {
  const wantsWhole = view.state === undefined || nowMs - view.wholeMs >= WHOLE_EVERY_MS;
  const since = wantsWhole
    ? {}
    : { epoch: view.state?.epoch ?? 0, sinceRevision: view.state?.revision ?? 0 };
  const first = await read(view.edge, { ...since, limit: PAGE_MAX }, signal);
  const sandboxes = first.full ? new Map<string, ListedSandbox>() : view.sandboxes;
  let page = first;
  for (;;) {
    for (const sandbox of page.sandboxes) sandboxes.set(sandbox.id, sandbox);
    if (page.cursor === undefined) break;
    page = await read(view.edge, { cursor: page.cursor, limit: PAGE_MAX }, signal);
  }
  const { sandboxes: _listed, full: _full, cursor: _cursor, ...state } = first;
  view.state = { ...state, load: page.load };
  view.sandboxes = sandboxes;
  if (first.full) view.wholeMs = nowMs;
  let live = 0;
  for (const { state: word } of sandboxes.values()) if (!isEndState(word)) live += 1;
  view.live = live;
}
