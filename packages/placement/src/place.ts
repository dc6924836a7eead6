/**
 * Which edge a sandbox goes to: filter, then the best of a few that are drawn at random (power of k
 * choices: Mitzenmacher 2001). Pure: the view of the fleet comes in, a choice goes out. The edge has the last
 * word, so a view that is a little old costs a second try and nothing else.
 */
import type { Backend, EdgeState } from '@dsec/protocol';
import { DsecError, type EdgeId, type Random } from '@dsec/std';

export interface EdgeCandidate {
  readonly edge: EdgeId;
  /** It answered when it was last asked. */
  readonly healthy: boolean;
  readonly backends: readonly Backend[];
  readonly load: EdgeState['load'];
  /** Sandboxes that live there, as far as the view knows. */
  readonly live: number;
  /** Placed there by us, and not yet in the view. */
  readonly pending: number;
}

export interface PlacementRequest {
  /** Absent: any. */
  readonly backend?: Backend | undefined;
  /** That have refused it already. */
  readonly excluded?: ReadonlySet<EdgeId> | undefined;
}

/** Edges that are drawn; more make herds that all run to the same one. */
const CHOICES = 2;
/** What a sandbox is taken to need until the edge shows what it does need. */
const PENDING_BYTES = 16 * 2 ** 20;

/**
 * One edge. Throws `unavailable` when no edge answers, `unsupported` when none has the backend, and
 * `overloaded` when all that have it refuse; `details.refusal` is the reason of one of them.
 */
export function placeOne(
  fleet: readonly EdgeCandidate[],
  request: PlacementRequest,
  random: Random,
): EdgeId {
  return pick(fit(fleet, request), new Map(), random);
}

/** So many edges in one pass, each choice counted in the next ones. Throws as `placeOne`. */
export function placeMany(
  fleet: readonly EdgeCandidate[],
  request: PlacementRequest,
  count: number,
  random: Random,
): readonly EdgeId[] {
  const candidates = fit(fleet, request);
  const added = new Map<EdgeId, number>();
  return Array.from({ length: count }, () => {
    const edge = pick(candidates, added, random);
    added.set(edge, (added.get(edge) ?? 0) + 1);
    return edge;
  });
}

/** Those that can take it, at least one. */
function fit(
  fleet: readonly EdgeCandidate[],
  { backend, excluded }: PlacementRequest,
): readonly EdgeCandidate[] {
  const healthy = fleet.filter((candidate) => candidate.healthy);
  if (healthy.length === 0) {
    throw new DsecError('unavailable', 'no edge answers', { details: { edges: fleet.length } });
  }
  const able = healthy.filter(
    (candidate) => backend === undefined || candidate.backends.includes(backend),
  );
  if (able.length === 0) {
    throw new DsecError('unsupported', `no edge runs ${backend}`, {
      details: { field: 'backend' },
    });
  }
  const free = able.filter(({ edge, load }) => load.admitting && excluded?.has(edge) !== true);
  if (free.length > 0) return free;
  const refusal = able.find(({ load }) => !load.admitting)?.load.refusal;
  throw new DsecError('overloaded', 'no edge takes another sandbox now', {
    details: { edges: able.length, ...(refusal === undefined ? {} : { refusal }) },
  });
}

function pick(
  candidates: readonly EdgeCandidate[],
  added: ReadonlyMap<EdgeId, number>,
  random: Random,
): EdgeId {
  let best = draw(candidates, random);
  for (let drawn = 1; drawn < Math.min(CHOICES, candidates.length); drawn += 1) {
    const other = draw(candidates, random);
    if (burden(other, added) < burden(best, added)) best = other;
  }
  return best.edge;
}

function draw(candidates: readonly EdgeCandidate[], random: Random): EdgeCandidate {
  return candidates[random.int(candidates.length)] as EdgeCandidate;
}

/**
 * How full an edge is: the scarcest of its memory and its processors, each as a share. What was placed and
 * is not seen yet counts as if it were there.
 */
function burden(
  { edge, load, live, pending }: EdgeCandidate,
  added: ReadonlyMap<EdgeId, number>,
): number {
  const unseen = pending + (added.get(edge) ?? 0);
  const used = load.memoryTotalBytes - load.memoryAvailableBytes + unseen * PENDING_BYTES;
  const memory = used / Math.max(1, load.memoryTotalBytes);
  const processors = (live + unseen) / Math.max(1, load.cpuCount * SANDBOXES_PER_CPU);
  return Math.max(memory, processors, (load.memoryPressurePct ?? 0) / 100);
}

/** So many mostly idle sandboxes make a processor as full as memory that is all used. */
const SANDBOXES_PER_CPU = 1024;
