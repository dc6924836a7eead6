/** Many sandboxes of one kind by one request: spread, made side by side, each told when it is ready. */
import type { SandboxBatchItem, SandboxCreate } from '@dsec/protocol';
import { asDsecError, DsecError, type EdgeId, toErrorBody } from '@dsec/std';
import { crashPoint } from '../crash-point.ts';
import {
  type BatchLedger,
  BatchRecord,
  createBatchLedger,
  createUnkeyedLedger,
  newBatchRecord,
  placeIn,
  sandboxIdIn,
} from './batch-record.ts';
import { createRecords } from './create-record.ts';
import {
  type CreateContext,
  type CreateParts,
  checkSource,
  discard,
  isRefusal,
  sendCreate,
  settleLayers,
} from './send-create.ts';

export type CreateBatch = (
  request: { readonly count: number; readonly spec: SandboxCreate },
  context: CreateContext,
) => Promise<AsyncIterable<SandboxBatchItem>>;

/** Of one batch that are being made at a time. */
const AT_ONCE = 64;
/** Batches at a time. */
const BATCHES_MAX = 256;
const EDGES_TRIED_MAX = 8;

/**
 * See `createSandboxes` in the route table. What is wrong with the request as a whole is thrown before the
 * first line; what is wrong with one sandbox is its line. A caller that leaves stops what has not begun;
 * what was made stays until its time is up, or until a repetition of the request finds it.
 */
export function createBatch(parts: CreateParts): CreateBatch {
  let running = 0;
  return async ({ count, spec }, context) => {
    checkSource(spec);
    if (running >= BATCHES_MAX) {
      throw new DsecError('overloaded', `${BATCHES_MAX} batches are under way already`);
    }
    const { ledger, isNew } = await openLedger(parts, count, spec, context);
    const make = (index: number) => makeOne(parts, ledger, { index, spec, context, isNew });
    return (async function* () {
      running += 1;
      try {
        yield* asTheyCome(count, make, context.signal);
      } finally {
        running -= 1;
      }
    })();
  };
}

async function openLedger(
  parts: CreateParts,
  count: number,
  spec: SandboxCreate,
  { identity, idempotencyKey, bodyDigest: digest, signal }: CreateContext,
): Promise<{ readonly ledger: BatchLedger; readonly isNew: boolean }> {
  const records = createRecords(parts.keys, BatchRecord);
  const fresh = async () => {
    const layers = await settleLayers(parts, spec, identity);
    const placed = await parts.placer.choose({ backend: spec.backend }, count, signal);
    return newBatchRecord(digest, placed, layers, parts.random);
  };
  if (idempotencyKey === undefined) {
    return { ledger: createUnkeyedLedger(await fresh()), isNew: true };
  }
  const name = records.nameOf(identity, 'createSandboxes', idempotencyKey);
  const found = await records.find(name, digest);
  if (found === undefined) parts.quota.take(identity.project);
  const recorded =
    found === undefined
      ? await records.claim(name, await fresh(), digest)
      : { ...found, isNew: false };
  crashPoint('batch.after-record');
  return { ledger: createBatchLedger(records, name, recorded), isNew: recorded.isNew };
}

async function makeOne(
  parts: CreateParts,
  ledger: BatchLedger,
  {
    index,
    spec,
    context,
    isNew,
  }: {
    readonly index: number;
    readonly spec: SandboxCreate;
    readonly context: CreateContext;
    readonly isNew: boolean;
  },
): Promise<SandboxBatchItem> {
  const tried = new Set<EdgeId>();
  for (;;) {
    const { record } = ledger;
    const at = placeIn(record, index);
    const { shardId } = parts.fleet.link(at.edge);
    const sandboxId = sandboxIdIn(record, index, at, shardId);
    const place = { edge: at.edge, sandbox: sandboxId, layers: record.layers };
    // A sandbox that was moved here was recorded by us just now.
    const isFirst = isNew || tried.size > 0;
    try {
      const sandbox = await sendCreate(parts, place, spec, context, isFirst);
      crashPoint('batch.after-one');
      if (await ledger.isCurrent(index, at)) return { index, sandbox };
      await discard(parts, place, context);
    } catch (thrown) {
      const error = asDsecError(thrown);
      tried.add(at.edge);
      const goesOn = isRefusal(error, isFirst) && tried.size < EDGES_TRIED_MAX;
      if (
        !goesOn ||
        !(await moveOn(parts, ledger, { index, spec, tried, signal: context.signal }))
      ) {
        return { index, error: toErrorBody(error) };
      }
    }
  }
}

/** False when there is no other edge. */
async function moveOn(
  { placer }: CreateParts,
  ledger: BatchLedger,
  {
    index,
    spec: { backend },
    tried: excluded,
    signal,
  }: {
    readonly index: number;
    readonly spec: SandboxCreate;
    readonly tried: ReadonlySet<EdgeId>;
    readonly signal: AbortSignal;
  },
): Promise<boolean> {
  const [edge] = await placer.choose({ backend, excluded }, 1, signal).catch(() => []);
  if (edge === undefined) return false;
  await ledger.move(index, edge);
  return true;
}

/**
 * Results in the order in which they come. Nothing more is begun while nobody takes them, so that what waits
 * is at most what was at once under way.
 */
async function* asTheyCome<T>(
  count: number,
  make: (index: number) => Promise<T>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  const done: T[] = [];
  let failure: { readonly thrown: unknown } | undefined;
  let wake = () => {};
  let underWay = 0;
  const start = (index: number) => {
    underWay += 1;
    make(index)
      .then(
        (result) => done.push(result),
        (thrown: unknown) => {
          failure ??= { thrown };
        },
      )
      .finally(() => {
        underWay -= 1;
        wake();
      });
  };
  for (let begun = 0, told = 0; told < count; ) {
    signal.throwIfAborted();
    while (begun < count && underWay + done.length < AT_ONCE) start(begun++);
    const result = done.shift();
    if (result !== undefined) {
      told += 1;
      yield result;
      continue;
    }
    if (failure !== undefined) throw failure.thrown;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
}
