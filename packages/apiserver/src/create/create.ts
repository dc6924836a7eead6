/** From a request to a sandbox on an edge, exactly once for one key. */
import type { Identity } from '@dsec/iam';
import { ROUTES, type Sandbox, type SandboxCreate } from '@dsec/protocol';
import {
  asDsecError,
  type Clock,
  type Digest,
  DsecError,
  type EdgeId,
  newSandboxId,
  type Random,
} from '@dsec/std';
import type { KeyStore } from '@dsec/store';
import { crashPoint } from '../crash-point.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { CreateRecord, createRecords, type Recorded } from './create-record.ts';
import type { Placer } from './placer.ts';

export interface CreateParts {
  readonly fleet: Fleet;
  readonly placer: Placer;
  readonly keys: KeyStore;
  readonly clock: Clock;
  readonly random: Random;
  /** The layers of a named environment; `not-found`. */
  readonly layersOf: (project: string, environment: string) => Promise<readonly string[]>;
}

/** Who asks, and under which key. */
export interface CreateContext {
  readonly identity: Identity;
  readonly idempotencyKey: string | undefined;
  readonly bodyDigest: Digest;
  readonly requestId: string;
  readonly traceparent: string;
  readonly signal: AbortSignal;
}

/** Where a sandbox is to be. */
export interface Place {
  readonly sandbox: string;
  readonly edge: string;
}

export type CreateSandbox = (body: SandboxCreate, context: CreateContext) => Promise<Sandbox>;

/** Edges that are tried for one request. */
const EDGES_TRIED_MAX = 8;

/** See `createSandbox` in the route table. Errors of the edge come as they are. */
export function createCreate(parts: CreateParts): CreateSandbox {
  const { keys, placer } = parts;
  const records = createRecords(keys, CreateRecord);

  return async (body, context) => {
    checkSource(body);
    const { identity, idempotencyKey: key, bodyDigest: digest } = context;
    const name = key === undefined ? undefined : records.nameOf(identity, 'createSandbox', key);
    const found = name === undefined ? undefined : await records.find(name, digest);
    let plan = found ?? (await claimNew());
    const tried = new Set<EdgeId>();

    for (;;) {
      try {
        const sandbox = await sendCreate(parts, plan.value, body, context);
        crashPoint('create.after-edge');
        const current = name === undefined ? undefined : await records.find(name, digest);
        if (current === undefined || current.value.sandbox === sandbox.id) return sandbox;
        // Another apiserver was refused there before it made room, and has gone elsewhere.
        await discard(parts, plan.value, context);
        plan = current;
      } catch (thrown) {
        const error = asDsecError(thrown);
        tried.add(plan.value.edge as EdgeId);
        if (error.code !== 'overloaded' || tried.size >= EDGES_TRIED_MAX) throw error;
        plan = await moveOn(error);
      }
    }

    async function claimNew(): Promise<Recorded<CreateRecord>> {
      const layers = await settleLayers(parts, body, identity);
      const place = await placeNew(parts, body, new Set());
      const value = { format: 1 as const, digest, ...place, ...layers };
      if (name === undefined) return { value, revision: 0 };
      crashPoint('create.before-record');
      const claimed = await records.claim(name, value, digest);
      crashPoint('create.after-record');
      return claimed;
    }

    /** Another edge, recorded before it is asked. Without one, what the last one said stands. */
    async function moveOn(refusal: DsecError): Promise<Recorded<CreateRecord>> {
      const place = await placeNew(parts, body, tried).catch(() => {
        throw refusal;
      });
      const value = { ...plan.value, ...place };
      if (name === undefined) return { value, revision: 0 };
      crashPoint('create.before-move');
      const moved = await records.move(name, plan, value, digest);
      crashPoint('create.after-move');
      return moved;
    }
  };

  async function placeNew(
    { fleet, random }: CreateParts,
    { backend }: SandboxCreate,
    excluded: ReadonlySet<EdgeId>,
  ): Promise<Place> {
    const [edge] = await placer.choose({ backend, excluded }, 1);
    const { shardId, edgeId } = fleet.link(edge as EdgeId);
    return { edge: edgeId, sandbox: newSandboxId(shardId, edgeId, random) };
  }
}

/** Exactly one of the two; an edge is given both, once a name is settled. */
export function checkSource({ environment, layers }: SandboxCreate): void {
  if ((environment === undefined) !== (layers === undefined)) return;
  throw new DsecError(
    'invalid-argument',
    'a sandbox needs either a named environment or its layers',
    { details: { field: 'layers' } },
  );
}

/** What an environment means now. */
export async function settleLayers(
  { layersOf }: CreateParts,
  { environment }: SandboxCreate,
  { project }: Identity,
): Promise<{ layers?: string[] }> {
  if (environment === undefined) return {};
  return { layers: [...(await layersOf(project, environment))] };
}

/**
 * Asks the edge of a place for the sandbox. The edge keeps the sandbox's id as the key, so that any number of
 * these make one.
 */
export async function sendCreate(
  { fleet, placer, clock }: CreateParts,
  { edge, sandbox, layers }: Place & { readonly layers?: readonly string[] },
  body: SandboxCreate,
  { identity, requestId, traceparent, signal }: CreateContext,
): Promise<Sandbox> {
  const link = fleet.link(edge as EdgeId);
  const end = placer.own.begin(link.edgeId);
  let created = false;
  try {
    const answer = await link.call(
      ROUTES.createSandbox,
      { body: layers === undefined ? body : { ...body, layers: [...layers] }, newSandbox: sandbox },
      { holder: identity, idempotencyKey: sandbox, requestId, traceparent, signal },
    );
    created = true;
    return answer;
  } finally {
    end(created, clock.monotonicMs());
  }
}

/** Of two that one request made, the one that its record does not name. */
async function discard(
  { fleet }: CreateParts,
  { edge, sandbox }: Place,
  { identity, signal }: CreateContext,
): Promise<void> {
  const link = fleet.link(edge as EdgeId);
  const params = { sandboxId: sandbox };
  await link.call(ROUTES.stopSandbox, { params }, { holder: identity, signal });
}
