import { FREEZE_TIMEOUT_MS, type SandboxKey, type SandboxStats } from '@dsec/backend';
import type { SandboxLimits } from '@dsec/protocol';
import { asDsecError, DsecError, formatBytes } from '@dsec/std';
import { isFrozen, memoryInUse, readStats } from './cgroup-files.ts';
import { CONTROLLERS, type Controller, hasSwap } from './cgroup-layout.ts';
import { settingsOf } from './limit-settings.ts';
import {
  type BackendContext,
  objectKey,
  placeOf,
  type RunningLife,
  requireRunning,
} from './sandbox-life.ts';
import { objectId } from './spawn-spec.ts';
import { fitsMemory } from './upper-choice.ts';

/** How long to wait between two looks: short at first, as most sandboxes freeze at once. */
const LOOK_MS = { first: 1, max: 20 };

type Settings = readonly { readonly name: string; readonly value: string }[];

async function write(
  { link }: BackendContext,
  { key }: RunningLife,
  hierarchy: string,
  settings: Settings,
  signal?: AbortSignal,
): Promise<void> {
  const client = await link.client(signal);
  await client.writeCgroup({ ...objectKey(key), hierarchy, settings: [...settings] }, signal);
}

const frozenSetting = (frozen: boolean) => [{ name: 'cgroup.freeze', value: frozen ? '1' : '0' }];

/** See `Backend.freeze`. */
export async function freezeSandbox(
  context: BackendContext,
  key: SandboxKey,
  signal?: AbortSignal,
): Promise<void> {
  const life = requireRunning(context, key);
  await write(context, life, 'unified', frozenSetting(true), signal);
  try {
    await waitUntilFrozen(context, objectId(key), signal);
  } catch (thrown) {
    // Without the signal: whoever gave up must not leave it stopped.
    if (life.state === 'running') await write(context, life, 'unified', frozenSetting(false));
    throw asDsecError(thrown);
  }
}

async function waitUntilFrozen({ node, clock }: BackendContext, id: string, signal?: AbortSignal) {
  const endMs = clock.monotonicMs() + FREEZE_TIMEOUT_MS;
  for (let lookMs = LOOK_MS.first; ; lookMs = Math.min(lookMs * 2, LOOK_MS.max)) {
    if (await isFrozen(node.cgroups, id)) return;
    if (clock.monotonicMs() >= endMs) {
      throw new DsecError('freeze-timeout', `${id} did not freeze within ${FREEZE_TIMEOUT_MS} ms`);
    }
    await clock.sleep(lookMs, signal);
  }
}

/** See `Backend.thaw`. */
export async function thawSandbox(
  context: BackendContext,
  key: SandboxKey,
  signal?: AbortSignal,
): Promise<void> {
  const life = requireRunning(context, key);
  await write(context, life, 'unified', frozenSetting(false), signal);
}

/**
 * See `Backend.pause`. Where nothing can be taken back (version 2 without swap: what is left is the page
 * cache of layers, that others use too), the sandbox is only frozen.
 */
export async function pauseSandbox(
  context: BackendContext,
  key: SandboxKey,
  signal?: AbortSignal,
): Promise<void> {
  await freezeSandbox(context, key, signal);
  const life = requireRunning(context, key);
  const memory = context.node.cgroups.controllers.memory;
  if (memory === undefined) return;
  try {
    if (memory.version === 1) {
      await write(context, life, 'memory', [{ name: 'memory.force_empty', value: '0' }], signal);
    } else if (hasSwap()) {
      const bytes = (await memoryInUse(context.node.cgroups, placeOf(life))) ?? 0;
      const value = `${bytes} swappiness=max`;
      await write(context, life, 'unified', [{ name: 'memory.reclaim', value }], signal);
    }
  } catch (thrown) {
    // The kernel says so when it could take back a part only, which is as good as it gets.
    if (thrown instanceof DsecError && PARTIAL.has(Number(thrown.details.errno))) return;
    throw thrown;
  }
}

/** EAGAIN, EBUSY. */
const PARTIAL: ReadonlySet<number> = new Set([11, 16]);

/** What each limit needs; those without a row cannot change while a sandbox runs. */
const CONTROLLER_OF: Readonly<Partial<Record<keyof SandboxLimits, Controller>>> = {
  cpuMillicores: 'cpu',
  memoryBytes: 'memory',
  pidsMax: 'pids',
};

/** See `Backend.update`. */
export async function updateSandbox(
  context: BackendContext,
  key: SandboxKey,
  limits: SandboxLimits,
  signal?: AbortSignal,
): Promise<void> {
  const life = requireRunning(context, key);
  const changed = changedLimits(life, limits);
  const { controllers, swapAccounting } = context.node.cgroups;
  for (const name of Object.keys(changed) as (keyof SandboxLimits)[]) {
    const controller = CONTROLLER_OF[name];
    if (controller === undefined || controllers[controller] === undefined) {
      throw new DsecError('unsupported', `${name} of a running container cannot change here`);
    }
  }
  await checkMemory(context, life, changed);
  for (const controller of CONTROLLERS) {
    const place = controllers[controller];
    if (place === undefined) continue;
    const settings = settingsOf(controller, place.version, changed, swapAccounting);
    if (settings.length === 0) continue;
    await write(context, life, place.version === 2 ? 'unified' : controller, settings, signal);
  }
  life.plan = { ...life.plan, limits: { ...life.plan.limits, ...changed } };
}

function changedLimits({ plan }: RunningLife, limits: SandboxLimits): SandboxLimits {
  const entries = Object.entries(limits) as [keyof SandboxLimits, number | undefined][];
  return Object.fromEntries(
    entries.filter(([name, value]) => value !== undefined && value !== plan.limits[name]),
  );
}

/** A lower limit must not kill, nor make a full writable layer the end of a process. */
async function checkMemory(context: BackendContext, life: RunningLife, changed: SandboxLimits) {
  const { memoryBytes } = changed;
  if (memoryBytes === undefined) return;
  const used = (await memoryInUse(context.node.cgroups, placeOf(life))) ?? 0;
  if (memoryBytes < used && memoryBytes < life.plan.limits.memoryBytes) {
    throw new DsecError('conflict', `it uses ${formatBytes(used)} of memory now`);
  }
  const inMemory = life.record.upperDriver === 'tmpfs' && !life.plan.allowDegraded;
  if (inMemory && !fitsMemory({ ...life.plan.limits, memoryBytes })) {
    const disk = formatBytes(life.plan.limits.diskBytes);
    throw new DsecError('invalid-argument', `its writable layer of ${disk} is in that memory`);
  }
}

/** See `Backend.stats`. */
export function sandboxStats(context: BackendContext, key: SandboxKey): Promise<SandboxStats> {
  return readStats(context.node.cgroups, placeOf(requireRunning(context, key)));
}
