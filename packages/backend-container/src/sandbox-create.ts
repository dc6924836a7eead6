import type { SandboxPlan, SandboxRuntime } from '@dsec/backend';
import { asDsecError, DsecError, SECOND_MS } from '@dsec/std';
import { oomKillsAtFirst } from './cgroup-files.ts';
import { checkProtections, protectionsOf } from './protections.ts';
import {
  type BackendContext,
  enroll,
  forget,
  type Life,
  layerIdsOf,
  newLife,
  objectKey,
  type RuntimeRecord,
  releaseLayers,
} from './sandbox-life.ts';
import { destroyObject } from './sandbox-stop.ts';
import { objectId, spawnSpecOf, viewsOf } from './spawn-spec.ts';
import { chooseUpper, type UpperChoice } from './upper-choice.ts';

/** Beside the layers: the launcher's part takes milliseconds. */
const SPAWN_TIMEOUT_MS = 30 * SECOND_MS;
const lateError = () =>
  new DsecError('deadline-exceeded', `the launcher took more than ${SPAWN_TIMEOUT_MS} ms`);
/** Nobody waits longer for a create whose launcher died over it: the rest is told as left. */
const UNDO_TIMEOUT_MS = 5 * SECOND_MS;

/** See `Backend.create`. */
export async function createSandbox(
  context: BackendContext,
  plan: SandboxPlan,
  signal?: AbortSignal,
): Promise<SandboxRuntime> {
  if (signal?.aborted) throw asDsecError(signal.reason);
  const id = objectId(plan.key);
  const known = context.lives.get(id);
  if (known !== undefined) {
    throw new DsecError(
      known.state === 'ended' || known.stopping ? 'state-conflict' : 'already-exists',
      `${id} is here already`,
    );
  }
  const { node } = context;
  checkSlot(context, plan);
  const upper = chooseUpper(plan.limits, node.upperDrivers, plan.allowDegraded);
  const protections = protectionsOf(
    ...([node, upper, plan.network !== undefined, plan.isolationDomain] as const),
  );
  checkProtections(protections, plan.requireProtections, plan.allowDegraded);
  const life = newLife(plan, 'creating');
  enroll(context, life);
  const creation = makeSandbox(context, life, upper, signal);
  life.created = creation.then(
    () => {},
    () => {},
  );
  const record = await creation;
  return { record, protections, upperDriver: upper.driver };
}

function checkSlot({ node }: BackendContext, { slot }: SandboxPlan): void {
  if (Number.isSafeInteger(slot) && slot >= 0 && slot < node.slotsMax) return;
  throw new DsecError('invalid-argument', `slots are from 0 to ${node.slotsMax - 1}, not ${slot}`);
}

async function makeSandbox(
  context: BackendContext,
  life: Life,
  upper: UpperChoice,
  signal: AbortSignal | undefined,
): Promise<RuntimeRecord> {
  const onAbort = () => life.giveUp.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  const progress = { spawning: false };
  try {
    return await spawn(context, life, upper, progress);
  } catch (thrown) {
    const error = asCreateError(thrown);
    const leftover = progress.spawning ? await undo(context, life) : undefined;
    if (leftover === undefined) {
      releaseLayers(context, life);
      forget(context, life);
      throw error;
    }
    life.state = 'ended';
    throw new DsecError(error.code, `${error.message}; undoing it failed: ${leftover.message}`, {
      cause: error,
      details: { ...error.details, leftover: true },
    });
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

async function spawn(
  context: BackendContext,
  life: Life,
  upper: UpperChoice,
  progress: { spawning: boolean },
): Promise<RuntimeRecord> {
  const { plan } = life;
  const { signal } = life.giveUp;
  await context.layers.acquire(layerIdsOf(plan), signal);
  life.holdsLayers = true;
  const client = await context.link.client(signal);
  const views = viewsOf(plan, context.node);
  context.views.write(views);
  const timer = setTimeout(() => life.giveUp.abort(lateError()), SPAWN_TIMEOUT_MS);
  try {
    progress.spawning = true;
    const spec = spawnSpecOf(plan, context.node, upper);
    // Nothing else is in the slot's directory now: what it counts from here on is of this sandbox.
    const place = { id: objectId(plan.key), slot: plan.slot };
    const oomKillsBefore = oomKillsAtFirst(context.node.cgroups, place);
    const { pid, startTicks } = await client.spawn(spec, signal);
    if (life.earlyExit !== undefined) {
      throw new DsecError('agent-lost', 'the agent ended as soon as it was started');
    }
    // At once: the next message may tell that it has ended.
    life.record = { pid, startTicks, upperDriver: upper.driver, oomKillsBefore };
    life.state = 'running';
    return life.record;
  } finally {
    clearTimeout(timer);
    context.views.drop(views);
  }
}

/** Whatever the launcher made of it goes. Returns why it does not. */
async function undo(context: BackendContext, life: Life): Promise<DsecError | undefined> {
  try {
    await destroyObject(context, objectKey(life.key), undefined, UNDO_TIMEOUT_MS);
    return undefined;
  } catch (thrown) {
    return asDsecError(thrown);
  }
}

/** What the launcher could not find or would not do is our fault: the caller named none of it. */
function asCreateError(thrown: unknown): DsecError {
  const error = asDsecError(thrown);
  const isOurs = error.details.step !== undefined;
  if (!isOurs || !['not-found', 'permission-denied'].includes(error.code)) return error;
  return new DsecError('internal', error.message, { cause: error, details: error.details });
}
