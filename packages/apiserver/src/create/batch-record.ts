/** Where each sandbox of a batch is: one record for all of them, changed before another edge is asked. */
import { createHash } from 'node:crypto';
import { BATCH_COUNT_MAX, LayerSelectorText, names } from '@dsec/protocol';
import {
  type Digest,
  type EdgeId,
  newSandboxId,
  type Random,
  type SandboxId,
  type ShardId,
} from '@dsec/std';
import Type, { type Static } from 'typebox';
import { crashPoint } from '../crash-point.ts';
import type { Recorded, Records } from './create-record.ts';

export const BatchRecord = names.record('BatchRecord', {
  format: Type.Literal(1),
  digest: names.digest,
  /** All ids of the batch come from it. */
  seed: Type.String({ pattern: '^[0-9a-f]{32}$', maxLength: 32 }),
  edges: names.listOfMax(names.edgeId, 4096),
  /** For each sandbox, the place of its edge in `edges`. */
  places: names.listOfMax(names.integer(0, 4095), BATCH_COUNT_MAX),
  /** For each sandbox, how often it was moved; absent while none was. */
  moves: Type.Optional(names.listOfMax(names.integer(0, 255), BATCH_COUNT_MAX)),
  layers: Type.Optional(names.listOfMax(LayerSelectorText, 64, 1)),
});
export type BatchRecord = Static<typeof BatchRecord>;

export function newBatchRecord(
  digest: Digest,
  placed: readonly EdgeId[],
  layers: { readonly layers?: string[] },
  random: Random,
): BatchRecord {
  const edges = [...new Set(placed)];
  const index = new Map(edges.map((edge, at) => [edge, at]));
  return {
    ...{ format: 1, digest, seed: Buffer.from(random.bytes(16)).toString('hex'), edges },
    ...{ places: placed.map((edge) => index.get(edge) ?? 0), ...layers },
  };
}

export interface BatchPlace {
  readonly edge: EdgeId;
  readonly moves: number;
}

export function placeIn({ edges, places, moves }: BatchRecord, index: number): BatchPlace {
  return { edge: edges[places[index] ?? 0] as EdgeId, moves: moves?.[index] ?? 0 };
}

/** The same for whoever knows the record. */
export function sandboxIdIn(
  { seed }: BatchRecord,
  index: number,
  { edge, moves }: BatchPlace,
  shard: ShardId,
): SandboxId {
  const bytes = createHash('sha256').update(`${seed}:${index}:${moves}`).digest();
  return newSandboxId(shard, edge, { bytes: (length) => bytes.subarray(0, length), int: () => 0 });
}

function withMoves(record: BatchRecord, wanted: ReadonlyMap<number, BatchPlace>): BatchRecord {
  const edges = [...record.edges];
  const places = [...record.places];
  const moves = record.moves === undefined ? places.map(() => 0) : [...record.moves];
  for (const [index, { edge, moves: count }] of wanted) {
    // Somebody else has moved it already: that stands.
    if ((moves[index] ?? 0) >= count) continue;
    let at = edges.indexOf(edge);
    if (at < 0) at = edges.push(edge) - 1;
    places[index] = at;
    moves[index] = count;
  }
  return { ...record, edges, places, moves };
}

export interface BatchLedger {
  readonly record: BatchRecord;
  /** Whether the place is still the one of the record that everybody sees. */
  isCurrent(index: number, place: BatchPlace): Promise<boolean>;
  /** Records another edge for a sandbox, unless another apiserver has; `record` has what holds then. */
  move(index: number, edge: EdgeId): Promise<void>;
}

/** Of a batch without a key, in memory alone. */
export function createUnkeyedLedger(first: BatchRecord): BatchLedger {
  let record = first;
  return {
    get record() {
      return record;
    },
    isCurrent: async () => true,
    async move(index, edge) {
      record = withMoves(
        record,
        new Map([[index, { edge, moves: placeIn(record, index).moves + 1 }]]),
      );
    },
  };
}

/** Moves that come while one is being written share the next write. */
export function createBatchLedger(
  records: Records<BatchRecord>,
  name: string,
  first: Recorded<BatchRecord>,
): BatchLedger {
  let current = first;
  const digest = first.value.digest as Digest;
  const wanted = new Map<number, BatchPlace>();
  let writing: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  const write = async () => {
    const taken = new Map(wanted);
    wanted.clear();
    for (;;) {
      const value = withMoves(current.value, taken);
      const moved = await records.move(name, current, value, digest);
      current = moved;
      if (moved.isNew) break;
    }
    crashPoint('batch.after-move');
  };
  const flush = (): Promise<void> => {
    if (writing === undefined) {
      writing = write().finally(() => {
        writing = undefined;
      });
      return writing;
    }
    next ??= writing
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return flush();
      });
    return next;
  };

  return {
    get record() {
      return current.value;
    },
    async isCurrent(index, place) {
      if (!(await records.isRevision(name, current.revision))) {
        const found = await records.find(name, digest);
        if (found !== undefined && found.revision > current.revision) current = found;
      }
      return placeIn(current.value, index).moves === place.moves;
    },
    async move(index, edge) {
      wanted.set(index, { edge, moves: placeIn(current.value, index).moves + 1 });
      await flush();
    },
  };
}
