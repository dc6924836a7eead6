/** From a request to a sandbox on an edge, exactly once for one key. */
import type { Sandbox, SandboxCreate } from '@dsec/protocol';
import { asDsecError, type DsecError, type EdgeId, newSandboxId } from '@dsec/std';
import { crashPoint } from '../crash-point.ts';
import { CreateRecord, createRecords, type Recorded, type Records } from './create-record.ts';
import {
  type CreateContext,
  type CreateParts,
  checkSource,
  discard,
  isRefusal,
  sendCreate,
  settleLayers,
} from './send-create.ts';

export type CreateSandbox = (body: SandboxCreate, context: CreateContext) => Promise<Sandbox>;

/** Edges that are tried for one request. */
const EDGES_TRIED_MAX = 8;

/** What one request has become so far. */
interface Plan extends Recorded<CreateRecord> {
  /** Nobody else can have asked for its sandbox. */
  readonly isNew: boolean;
}

interface Request {
  readonly body: SandboxCreate;
  readonly context: CreateContext;
  /** Of its record; absent without a key. */
  readonly name: string | undefined;
}

/** See `createSandbox` in the route table. Errors of the edge come as they are. */
export function createCreate(parts: CreateParts): CreateSandbox {
  const records = createRecords(parts.keys, CreateRecord);
  return async (body, context) => {
    checkSource(body);
    const { identity, idempotencyKey: key, bodyDigest: digest } = context;
    const name = key === undefined ? undefined : records.nameOf(identity, 'createSandbox', key);
    const request = { body, context, name };
    const found = name === undefined ? undefined : await records.find(name, digest);
    let plan: Plan =
      found === undefined ? await begin(parts, records, request) : { ...found, isNew: false };
    const tried = new Set<EdgeId>();
    for (;;) {
      try {
        const sandbox = await sendCreate(parts, plan.value, body, context, plan.isNew);
        crashPoint('create.after-edge');
        const current = name === undefined ? undefined : await records.find(name, digest);
        if (current === undefined || current.value.sandbox === sandbox.id) return sandbox;
        // Another apiserver was refused there before it made room, and has gone elsewhere.
        await discard(parts, plan.value, context);
        plan = { ...current, isNew: false };
      } catch (thrown) {
        const error = asDsecError(thrown);
        tried.add(plan.value.edge as EdgeId);
        if (!isRefusal(error, plan.isNew) || tried.size >= EDGES_TRIED_MAX) throw error;
        plan = await moveOn(parts, records, request, { plan, tried, refusal: error });
      }
    }
  };
}

async function begin(
  parts: CreateParts,
  records: Records<CreateRecord>,
  { body, context, name }: Request,
): Promise<Plan> {
  const layers = await settleLayers(parts, body, context.identity);
  const place = await placeOf(parts, body, new Set(), context.signal);
  const value = { format: 1 as const, digest: context.bodyDigest, ...place, ...layers };
  if (name === undefined) return { value, revision: 0, isNew: true };
  parts.quota.take(context.identity.project);
  crashPoint('create.before-record');
  const claimed = await records.claim(name, value, context.bodyDigest);
  crashPoint('create.after-record');
  return claimed;
}

/** Another edge, recorded before it is asked. Without one, what the last one said stands. */
async function moveOn(
  parts: CreateParts,
  records: Records<CreateRecord>,
  { body, context, name }: Request,
  from: { readonly plan: Plan; readonly tried: ReadonlySet<EdgeId>; readonly refusal: DsecError },
): Promise<Plan> {
  const place = await placeOf(parts, body, from.tried, context.signal).catch(() => {
    throw from.refusal;
  });
  const value = { ...from.plan.value, ...place };
  if (name === undefined) return { value, revision: 0, isNew: true };
  crashPoint('create.before-move');
  const moved = await records.move(name, from.plan, value, context.bodyDigest);
  crashPoint('create.after-move');
  return moved;
}

async function placeOf(
  { fleet, placer, random }: CreateParts,
  { backend }: SandboxCreate,
  excluded: ReadonlySet<EdgeId>,
  signal: AbortSignal,
): Promise<{ readonly edge: string; readonly sandbox: string }> {
  const [edge] = await placer.choose({ backend, excluded }, 1, signal);
  const { shardId, edgeId } = fleet.link(edge as EdgeId);
  return { edge: edgeId, sandbox: newSandboxId(shardId, edgeId, random) };
}
