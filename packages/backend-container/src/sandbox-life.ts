import type { SandboxExit, SandboxKey, SandboxPlan } from '@dsec/backend';
import type { Clock } from '@dsec/std';
import { DsecError } from '@dsec/std';
import type { SandboxPlace } from './cgroup-files.ts';
import type { ExitedObject, LauncherClient } from './launcher-client.ts';
import type { LauncherLink } from './launcher-link.ts';
import type { LayerMounts } from './layer-mounts.ts';
import { cgroupSettings, cgroupsOf } from './limit-settings.ts';
import { type LayerMountKey, mountKeyOf } from './mount-key.ts';
import type { NodeFacts } from './node-facts.ts';
import type { Router } from './router.ts';
import { objectId } from './spawn-spec.ts';
import type { UpperDriver } from './upper-choice.ts';
import type { ViewFiles } from './view-files.ts';

/** What is needed to know the process again (I10), and what cannot be derived from the plan. */
export interface RuntimeRecord {
  readonly pid: number;
  readonly startTicks: number;
  readonly upperDriver: UpperDriver;
  /** What its memory cgroup had counted before: one of version 1 has had other sandboxes. */
  readonly oomKillsBefore: number;
}

/** A sandbox as this process knows it. */
export interface Life {
  readonly key: SandboxKey;
  /** Limits change by `update`. */
  plan: SandboxPlan;
  state: 'creating' | 'running' | 'ended';
  record: RuntimeRecord | undefined;
  /** Aborted to give up its creation. */
  readonly giveUp: AbortController;
  /** Resolves when its creation has succeeded or failed and been undone. */
  created: Promise<void>;
  /** It uses the layers of its plan. */
  holdsLayers: boolean;
  /** Shared by all who stop it. */
  stopping: Promise<void> | undefined;
  /** The listeners know that it has ended. */
  told: boolean;
  /** Said by the launcher before its creation was done. */
  earlyExit: ExitedObject | undefined;
}

export interface BackendContext {
  readonly stateRoot: string;
  readonly node: NodeFacts;
  readonly link: LauncherLink;
  readonly layers: LayerMounts;
  readonly views: ViewFiles;
  readonly router: Router;
  readonly clock: Clock;
  /** By object id; changed by `enroll` and `forget` alone. */
  readonly lives: Map<string, Life>;
  /** Whose each slot is. */
  readonly slots: Map<number, Life>;
  readonly listeners: ((exit: SandboxExit) => void)[];
}

export function newLife(plan: SandboxPlan, state: Life['state'], record?: RuntimeRecord): Life {
  return {
    key: plan.key,
    plan,
    state,
    record,
    giveUp: new AbortController(),
    created: Promise.resolve(),
    holdsLayers: false,
    stopping: undefined,
    told: false,
    earlyExit: undefined,
  };
}

export const layerIdsOf = (plan: SandboxPlan): readonly LayerMountKey[] =>
  [...plan.layers, ...(plan.tools?.layers ?? [])].map((layer) => mountKeyOf(plan, layer));

/** The launcher's name of a sandbox. */
export const objectKey = ({ id, generation }: SandboxKey) => ({ name: id, generation });

/** `conflict` when another sandbox has the slot: the two would share user ids. */
export function enroll({ lives, slots }: BackendContext, life: Life): void {
  const { key, slot } = life.plan;
  const holder = slots.get(slot);
  if (holder !== undefined) {
    const [one, other] = [key, holder.key].map(objectId);
    throw new DsecError('conflict', `slot ${slot} of ${one} is still that of ${other}`);
  }
  lives.set(objectId(key), life);
  slots.set(slot, life);
}

export function forget({ lives, slots }: BackendContext, { key, plan }: Life): void {
  lives.delete(objectId(key));
  slots.delete(plan.slot);
}

export type RunningLife = Life & { readonly record: RuntimeRecord };

/** A sandbox that runs. `not-found` when nothing is known of it, `state-conflict` when it does not run. */
export function requireRunning({ lives }: BackendContext, key: SandboxKey): RunningLife {
  const life = lives.get(objectId(key));
  if (life === undefined) throw new DsecError('not-found', `no sandbox ${objectId(key)} is here`);
  if (life.state !== 'running' || life.stopping !== undefined) {
    throw new DsecError('state-conflict', `${objectId(key)} does not run`);
  }
  return life as RunningLife;
}

export function placeOf({ key, plan, record }: RunningLife): SandboxPlace {
  return { id: objectId(key), slot: plan.slot, ...record };
}

/** Has a launcher watch a sandbox of an earlier one. `not-found` when it does not run. */
export async function adopt(
  client: LauncherClient,
  node: NodeFacts,
  plan: SandboxPlan,
  record: RuntimeRecord,
  signal?: AbortSignal,
): Promise<void> {
  const settings = cgroupSettings(node.cgroups, plan.limits);
  const cgroups = cgroupsOf(settings, objectId(plan.key), plan.slot);
  const { pid, startTicks } = record;
  const places = cgroups.map((cgroup) => ({ ...cgroup, settings: [] }));
  await client.adopt({ ...objectKey(plan.key), pid, startTicks, cgroups: places }, signal);
}

/** Notes that a sandbox has ended by itself, and tells it once. */
export function endedByItself(context: BackendContext, life: Life, exit: SandboxExit): void {
  if (life.state !== 'running') return;
  life.state = 'ended';
  if (life.stopping !== undefined) return;
  life.told = true;
  // Apart from the connection that told it: a fault of a listener is not one of the launcher.
  for (const listener of context.listeners) queueMicrotask(() => listener(exit));
}

export function releaseLayers(context: BackendContext, life: Life): void {
  if (!life.holdsLayers) return;
  life.holdsLayers = false;
  context.layers.release(layerIdsOf(life.plan));
}
