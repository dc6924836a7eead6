/** One sandbox on one edge: asked for, and taken back. */
import type { Identity } from '@dsec/iam';
import { ROUTES, type Sandbox, type SandboxCreate } from '@dsec/protocol';
import {
  asDsecError,
  type Clock,
  type Digest,
  DsecError,
  type EdgeId,
  type Random,
  SECOND_MS,
} from '@dsec/std';
import type { KeyStore } from '@dsec/store';
import type { Children } from '../agents/children.ts';
import { confineSpec } from '../agents/confinement.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { KeyQuota } from './key-quota.ts';
import type { Placer } from './placer.ts';

export interface CreateParts {
  readonly fleet: Fleet;
  readonly placer: Placer;
  readonly keys: KeyStore;
  readonly quota: KeyQuota;
  readonly clock: Clock;
  readonly random: Random;
  /** The layers of a named environment; `not-found`. */
  readonly children: Pick<Children, 'add'>;
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
  /** What its environment means. */
  readonly layers?: readonly string[] | undefined;
  /** Of a key with limits. */
  readonly lifetimeMs?: number | undefined;
}

/** How long an edge that cannot be reached is tried while there are others. */
const OTHERS_PATIENCE_MS = SECOND_MS / 2;

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
 * Asks the edge of a place for the sandbox. The edge has the sandbox's id as the key, so that any number of
 * these make one. `isFirst`: nobody can have asked for this id before; then an edge that is out of reach is
 * given up early, because nothing can be there.
 */
export async function sendCreate(
  { fleet, placer, clock, children }: CreateParts,
  { edge, sandbox, layers, lifetimeMs }: Place,
  body: SandboxCreate,
  { identity: holder, requestId, traceparent, signal }: CreateContext,
  isFirst: boolean,
): Promise<Sandbox> {
  const link = fleet.link(edge as EdgeId);
  if (holder.limits !== undefined) await children.add(holder, sandbox);
  const own = confineSpec(body, holder, lifetimeMs);
  const settled = layers === undefined ? own : { ...own, layers: [...layers] };
  const input = { body: settled, newSandbox: sandbox };
  const options = { holder, idempotencyKey: sandbox, requestId, traceparent, signal };
  const ask = (more: { onlyUnsent?: true; patienceMs?: number }) =>
    link.call(ROUTES.createSandbox, input, { ...options, ...more });
  const end = placer.own.begin(link.edgeId);
  let created = false;
  try {
    const answer = await askTwice(ask, isFirst, fleet.links.length > 1);
    created = true;
    return answer;
  } finally {
    end(created, clock.monotonicMs());
  }
}

async function askTwice(
  ask: (more: { onlyUnsent?: true; patienceMs?: number }) => Promise<Sandbox>,
  isFirst: boolean,
  hasOthers: boolean,
): Promise<Sandbox> {
  if (!isFirst) return ask({});
  const patience = hasOthers ? { patienceMs: OTHERS_PATIENCE_MS } : {};
  try {
    return await ask({ onlyUnsent: true, ...patience });
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code !== 'unavailable' || wasNeverBegun(error)) throw error;
  }
  // It may have arrived: only the same edge can say.
  return ask({});
}

/** Whether a sandbox may be asked for at another edge: this one has certainly not begun with it. */
export function isRefusal(error: DsecError, isFirst: boolean): boolean {
  return error.code === 'overloaded' || (isFirst && wasNeverBegun(error));
}

function wasNeverBegun({ code, details }: DsecError): boolean {
  return code === 'unavailable' && (details.sent === false || details.begun === false);
}

/** Of two that one request made, the one that its record does not name. */
export async function discard(
  { fleet }: CreateParts,
  { edge, sandbox }: Place,
  { identity, signal }: CreateContext,
): Promise<void> {
  const link = fleet.link(edge as EdgeId);
  const params = { sandboxId: sandbox };
  await link.call(ROUTES.stopSandbox, { params }, { holder: identity, signal });
}
