/** From a request to a sandbox on an edge, exactly once for one key. */
import type { Sandbox, SandboxCreate } from '@dsec/protocol';
import { asDsecError, type DsecError, type EdgeId, newSandboxId } from '@dsec/std';
import { confineSpec, lifetimeOf } from '../agents/confinement.ts';
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
  /** Its edge, when it has been asked while the record was on its way to the disk. */
  readonly asked?: Promise<Sandbox> | undefined;
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
    // What is refused leaves no record.
    lifetimeOf(context.identity, body, parts.clock);
    confineSpec(body, context.identity);
    const { identity, idempotencyKey: key, bodyDigest: digest } = context;
    const name = key === undefined ? undefined : records.nameOf(identity, 'createSandbox', key);
    const request = { body, context, name };
    let plan = (await repeated(records, request)) ?? (await begin(parts, records, request));
    const tried = new Set<EdgeId>();
    for (;;) {
      try {
        const { asked = sendCreate(parts, plan.value, body, context, plan.isNew) } = plan;
        const sandbox = await asked;
        crashPoint('create.after-edge');
        const seen = name === undefined ? undefined : await records.glance(name, digest);
        if (seen === undefined || seen.value.sandbox === sandbox.id) return sandbox;
        const current = await records.find(String(name), digest);
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

/** What a request with the same key has become. */
async function repeated(
  records: Records<CreateRecord>,
  { context, name }: Request,
): Promise<Plan | undefined> {
  const { bodyDigest: digest } = context;
  if (name === undefined || (await records.glance(name, digest)) === undefined) return undefined;
  const found = await records.find(name, digest);
  return found === undefined ? undefined : { ...found, isNew: false };
}

/**
 * The record of a new request. Nothing is made that a recovery could not find: the edge is asked once every
 * process sees the record, even after the end of this one. Only an edge of another machine could outlive a
 * loss of power that takes the record away, so that such a one is asked when the record is on the disk. A
 * caller is never answered before that.
 */
async function begin(
  parts: CreateParts,
  records: Records<CreateRecord>,
  { body, context, name }: Request,
): Promise<Plan> {
  const layers = await settleLayers(parts, body, context.identity);
  const place = await placeOf(parts, body, new Set(), context.signal);
  const ttl = lifetimeOf(context.identity, body, parts.clock);
  const value = { format: 1 as const, digest: context.bodyDigest, ...place, ...layers, ...ttl };
  if (name === undefined) return { value, revision: 0, isNew: true };
  parts.quota.take(context.identity.project);
  crashPoint('create.before-record');
  let asked: Promise<Sandbox> | undefined;
  const ask = () => {
    crashPoint('create.before-flush');
    asked = sendCreate(parts, value, body, context, true);
    asked.catch(() => {});
  };
  const onCarriedOut = parts.fleet.link(value.edge as EdgeId).isLocal ? ask : undefined;
  try {
    const claimed = await records.claim(name, value, context.bodyDigest, onCarriedOut);
    crashPoint('create.after-record');
    return { ...claimed, asked };
  } catch (thrown) {
    // Whether the disk has the record, nobody knows; the caller hears that it has failed.
    await asked?.then(() => discard(parts, value, context)).catch(() => {});
    throw thrown;
  }
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
