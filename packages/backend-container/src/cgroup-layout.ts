import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DsecError } from '@dsec/std';

/** Controllers that limits need. */
export const CONTROLLERS = ['cpu', 'memory', 'pids'] as const;
export type Controller = (typeof CONTROLLERS)[number];

/** Where a controller's files of a sandbox are. */
export interface ControllerPlace {
  readonly version: 1 | 2;
  /** The edge's own directory in that hierarchy. */
  readonly directory: string;
}

/**
 * The edge's part of the node's cgroups. Each sandbox has a life directory of version 2; a controller
 * that only version 1 has is used from directories that are pooled, as making and removing those costs
 * milliseconds.
 */
export interface CgroupLayout {
  readonly unified: string;
  readonly controllers: Readonly<Partial<Record<Controller, ControllerPlace>>>;
  /** The memory controller counts swap too. */
  readonly swapAccounting: boolean;
}

/** Every mounted hierarchy, in the order of the mount table. */
function readMounts() {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => {
      const [, point = '', type, options = ''] = line.split(' ');
      return { point, type, options: options.split(',') };
    })
    .filter(({ type }) => type === 'cgroup2' || type === 'cgroup');
}

/**
 * Where a launcher belongs, so that what ends a service by its cgroup does not end it: in the hierarchies
 * by which service managers know their processes. Beside its sandboxes, not among them: what they can have
 * of the host is bounded together, and a launcher must be able to act when they have it all.
 */
export function launcherCgroups(edgeId: string): readonly string[] {
  return readMounts()
    .filter(({ type, options }) => type === 'cgroup2' || options.includes('name=systemd'))
    .map(({ point }) => join(point, `dsec-${edgeId}-launcher`));
}

/** Finds the hierarchies as the launcher does. `unsupported` on a host without version 2. */
export function probeCgroups(edgeId: string): CgroupLayout {
  const mounts = readMounts();
  const version2 = mounts.find(({ type }) => type === 'cgroup2');
  if (version2 === undefined) {
    throw new DsecError('unsupported', 'this host has no cgroups of version 2 mounted');
  }
  const unified = join(version2.point, `dsec-${edgeId}`);
  const delegated = readControllers(unified) ?? readControllers(version2.point) ?? [];
  const placeOf = (controller: Controller): ControllerPlace | undefined => {
    if (delegated.includes(controller)) return { version: 2, directory: unified };
    const version1 = mounts.find(
      ({ type, options }) => type === 'cgroup' && options.includes(controller),
    );
    if (version1 === undefined || !canLimit(version1.point, controller)) return undefined;
    return { version: 1, directory: join(version1.point, `dsec-${edgeId}`) };
  };
  const controllers: Partial<Record<Controller, ControllerPlace>> = {};
  for (const controller of CONTROLLERS) {
    const place = placeOf(controller);
    if (place !== undefined) controllers[controller] = place;
  }
  return { unified, controllers, swapAccounting: countsSwap(controllers.memory) };
}

function readControllers(directory: string): readonly string[] | undefined {
  try {
    return readFileSync(join(directory, 'cgroup.controllers'), 'utf8').trim().split(' ');
  } catch {
    return undefined;
  }
}

/** A kernel may have the controller without the limit; that of processes is not in the topmost directory. */
function canLimit(directory: string, controller: Controller): boolean {
  if (controller === 'pids') return true;
  const file = controller === 'cpu' ? 'cpu.cfs_quota_us' : 'memory.limit_in_bytes';
  return existsSync(join(directory, file));
}

/** Version 2 does in every kernel that can swap; version 1 only when the kernel was told to. */
function countsSwap(memory: ControllerPlace | undefined): boolean {
  if (memory === undefined) return false;
  if (memory.version === 2) return existsSync('/proc/swaps');
  return existsSync(join(memory.directory, '..', 'memory.memsw.limit_in_bytes'));
}

/** Whether there is swap at this moment. */
export function hasSwap(): boolean {
  if (!existsSync('/proc/swaps')) return false;
  return readFileSync('/proc/swaps', 'utf8').trim().split('\n').length > 1;
}
