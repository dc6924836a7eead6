import type { SandboxLimits, SpawnFields } from '@dsec/protocol';
import type { CgroupLayout, Controller, ControllerPlace } from './cgroup-layout.ts';
import { CONTROLLERS } from './cgroup-layout.ts';

type Cgroup = SpawnFields['cgroups'][number];
type Settings = Cgroup['settings'];

const CPU_PERIOD_US = 100_000;
const MILLICORES = 1000;
/** What a processor's worth of quota weighs against others: the kernel's default of each version. */
const SHARES_PER_CORE = 1024;
const SHARES = { min: 2, max: 262_144 };
const WEIGHT_PER_CORE = 100;
const WEIGHT = { min: 1, max: 10_000 };

const clamp = (value: number, { min, max }: { min: number; max: number }) =>
  Math.min(max, Math.max(min, Math.round(value)));

const setting = (name: string, value: string | number) => ({ name, value: `${value}` });

/** The quota bounds, the weight shares out what others leave (both follow one limit). */
function cpuSettings(version: 1 | 2, cpuMillicores: number): Settings {
  const quota = Math.round((cpuMillicores * CPU_PERIOD_US) / MILLICORES);
  const cores = cpuMillicores / MILLICORES;
  if (version === 2) {
    return [
      setting('cpu.max', `${quota} ${CPU_PERIOD_US}`),
      setting('cpu.weight', clamp(cores * WEIGHT_PER_CORE, WEIGHT)),
    ];
  }
  return [
    setting('cpu.cfs_period_us', CPU_PERIOD_US),
    setting('cpu.cfs_quota_us', quota),
    setting('cpu.shares', clamp(cores * SHARES_PER_CORE, SHARES)),
  ];
}

/**
 * Without swap. In version 1 the limit on both together must never be below that on memory, so it is
 * lifted first.
 */
function memorySettings(version: 1 | 2, memoryBytes: number, swapAccounting: boolean): Settings {
  if (version === 2) {
    return [
      setting('memory.max', memoryBytes),
      ...(swapAccounting ? [setting('memory.swap.max', 0)] : []),
    ];
  }
  const both = (value: number) =>
    swapAccounting ? [setting('memory.memsw.limit_in_bytes', value)] : [];
  return [
    ...both(-1),
    setting('memory.limit_in_bytes', memoryBytes),
    ...both(memoryBytes),
    setting('memory.swappiness', 0),
  ];
}

/** What keeps one limit, for one controller. Empty for limits that the controller does not know. */
export function settingsOf(
  controller: Controller,
  version: 1 | 2,
  limits: SandboxLimits,
  swapAccounting: boolean,
): Settings {
  const { cpuMillicores, memoryBytes, pidsMax } = limits;
  if (controller === 'cpu') {
    return cpuMillicores === undefined ? [] : cpuSettings(version, cpuMillicores);
  }
  if (controller === 'memory') {
    return memoryBytes === undefined ? [] : memorySettings(version, memoryBytes, swapAccounting);
  }
  return pidsMax === undefined ? [] : [setting('pids.max', pidsMax)];
}

/** Counters of a pooled directory start again for its next owner (THREATS C7). */
const BASELINES: Readonly<Record<Controller, Settings>> = {
  cpu: [],
  memory: [setting('memory.max_usage_in_bytes', 0)],
  pids: [],
};

/** What is written to the cgroups of every sandbox with the same limits. */
export interface CgroupSettings {
  /** To the life directory, for the controllers of version 2. */
  readonly life: Settings;
  /** To a directory of its own for each controller of version 1. */
  readonly pooled: readonly { readonly hierarchy: string; readonly settings: Settings }[];
}

export function cgroupSettings(layout: CgroupLayout, limits: SandboxLimits): CgroupSettings {
  const placed = CONTROLLERS.flatMap((controller): [Controller, ControllerPlace][] => {
    const place = layout.controllers[controller];
    return place === undefined ? [] : [[controller, place]];
  });
  const of = ([controller, { version }]: [Controller, ControllerPlace]) =>
    settingsOf(controller, version, limits, layout.swapAccounting);
  return {
    life: placed.filter(([, { version }]) => version === 2).flatMap(of),
    pooled: placed
      .filter(([, { version }]) => version === 1)
      .map((entry) => ({
        hierarchy: entry[0],
        settings: [...of(entry), ...BASELINES[entry[0]]],
      })),
  };
}

/**
 * The cgroups of a sandbox: its life directory first, with the controllers of version 2, then one for
 * each controller of version 1.
 *
 * @param id `<name>-<generation>`.
 */
export function cgroupsOf({ life, pooled }: CgroupSettings, id: string, slot: number): Cgroup[] {
  const directory = Buffer.from(poolName(slot));
  return [
    { hierarchy: 'unified', directory: Buffer.from(id), settings: life },
    ...pooled.map(({ hierarchy, settings }) => ({ hierarchy, directory, settings })),
  ];
}

export const poolName = (slot: number): string => `pool-${slot}`;
