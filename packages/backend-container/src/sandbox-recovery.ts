import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type {
  RecoveryReport,
  SandboxClaim,
  SandboxExit,
  SandboxKey,
  SandboxRecovery,
} from '@dsec/backend';
import { asDsecError, parseSandboxId } from '@dsec/std';
import { isToBeFrozen } from './cgroup-files.ts';
import { exitOf, lostExit } from './exit-reason.ts';
import type { LauncherClient, ListedObject } from './launcher-client.ts';
import { readRecord } from './runtime-record.ts';
import {
  adopt,
  type BackendContext,
  endedByItself,
  enroll,
  forget,
  type Life,
  layerIdsOf,
  newLife,
  objectKey,
} from './sandbox-life.ts';
import { destroyObject } from './sandbox-stop.ts';
import { objectId } from './spawn-spec.ts';

/** Requests to the launcher at one time. */
const CONCURRENCY = 64;

/**
 * Takes up again what runs, with a launcher that may be another than before: watches it, and tells of
 * what ended while nobody watched.
 */
export async function readoptSandboxes(
  context: BackendContext,
  client: LauncherClient,
): Promise<void> {
  const running = [...context.lives.values()].filter(({ state }) => state === 'running');
  const lost = new Set<Life>();
  await eachOf(running, async (life) => {
    if (!(await isAdopted(context, client, life))) lost.add(life);
  });
  const objects = await listById(client);
  for (const life of running) {
    const object = objects.get(objectId(life.key));
    if (object?.running && !lost.has(life)) continue;
    const exit =
      object === undefined || object.running ? lostExit(life.key) : exitOf(life.key, object);
    endedByItself(context, life, exit);
  }
  const mounted = await client.listLayers();
  context.layers.found(mounted.map(({ layerId }) => layerId));
}

async function isAdopted({ node }: BackendContext, client: LauncherClient, life: Life) {
  if (life.record === undefined) return false;
  try {
    await adopt(client, node, life.plan, life.record);
    return true;
  } catch (thrown) {
    if (asDsecError(thrown).code === 'not-found') return false;
    throw thrown;
  }
}

/** See `Backend.recover`. May be called again when it rejects. */
export async function recoverSandboxes(
  context: BackendContext,
  claims: readonly SandboxClaim[],
  signal?: AbortSignal,
): Promise<RecoveryReport> {
  const client = await context.link.client(signal);
  const lives = claims.map(({ plan, runtime }) => {
    const known = context.lives.get(objectId(plan.key));
    if (known !== undefined) return known;
    const record = runtime === undefined ? undefined : readRecord(runtime.record);
    const life = newLife(plan, record === undefined ? 'ended' : 'running', record);
    enroll(context, life);
    return life;
  });
  await readoptAll(context, client, lives);
  const objects = await listById(client);
  const sandboxes: SandboxRecovery[] = [];
  await eachOf(lives, async (life) => {
    sandboxes.push(await settle(context, life, objects.get(objectId(life.key)), signal));
  });
  const claimed = new Set(claims.map(({ plan }) => objectId(plan.key)));
  const strangers = [...foundKeys(context, objects).entries()].filter(([id]) => !claimed.has(id));
  await eachOf(strangers, ([, key]) => destroyObject(context, objectKey(key), signal));
  const mounted = await client.listLayers(signal);
  context.layers.found(mounted.map(({ layerId }) => layerId));
  return { sandboxes, destroyed: strangers.map(([, key]) => key) };
}

async function readoptAll(context: BackendContext, client: LauncherClient, lives: readonly Life[]) {
  await eachOf(lives, async (life) => {
    if (life.state !== 'running') return;
    if (!(await isAdopted(context, client, life))) life.state = 'ended';
  });
}

/** Watches it again, or removes what is left of it. */
async function settle(
  context: BackendContext,
  life: Life,
  object: ListedObject | undefined,
  signal: AbortSignal | undefined,
): Promise<SandboxRecovery> {
  const { key } = life;
  // One that has ended meanwhile, and was told of, is to be stopped as any other.
  if (life.told || (life.state === 'running' && object?.running !== false)) {
    if (!life.holdsLayers) context.layers.claim(layerIdsOf(life.plan));
    life.holdsLayers = true;
    return { key, running: true, frozen: await isHeld(context, life) };
  }
  const seen = life.record !== undefined && object !== undefined && !object.running;
  const exit: SandboxExit | undefined = seen ? exitOf(key, object) : undefined;
  await destroyObject(context, objectKey(key), signal);
  forget(context, life);
  return { key, running: false, exit };
}

/** One that has ended this moment is held by nobody. */
function isHeld({ node }: BackendContext, { key }: Life): Promise<boolean> {
  return isToBeFrozen(node.cgroups, objectId(key)).catch(() => false);
}

async function listById(client: LauncherClient): Promise<ReadonlyMap<string, ListedObject>> {
  const objects = await client.listObjects();
  return new Map(objects.map((object) => [`${object.name}-${object.generation}`, object]));
}

/** Every sandbox that the launcher knows, or of which there is a cgroup or a socket of this edge. */
function foundKeys(
  { node, stateRoot }: BackendContext,
  objects: ReadonlyMap<string, ListedObject>,
): ReadonlyMap<string, SandboxKey> {
  const sockets = namesIn(join(stateRoot, 'run/sb')).map((name) => name.replace(/\.sock$/, ''));
  const names = [...objects.keys(), ...namesIn(node.cgroups.unified), ...sockets];
  return new Map(
    names.flatMap((name): [string, SandboxKey][] => {
      const key = parseObjectId(name);
      return key === undefined ? [] : [[name, key]];
    }),
  );
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function parseObjectId(name: string): SandboxKey | undefined {
  const [, id = '', generation = ''] = /^(.+)-([1-9]\d{0,9})$/.exec(name) ?? [];
  try {
    return { id: parseSandboxId(id).id, generation: Number(generation) };
  } catch {
    return undefined;
  }
}

/** Works on all of them, some at a time; the first failure ends it once those under way are done. */
async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items];
  const failures: unknown[] = [];
  const worker = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) {
      if (failures.length > 0) return;
      await work(item).catch((thrown: unknown) => failures.push(thrown));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  if (failures.length > 0) throw failures[0];
}
