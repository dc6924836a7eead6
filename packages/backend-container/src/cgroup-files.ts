import { readFileSync } from 'node:fs';
import { readFile, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { SandboxStats } from '@dsec/backend';
import { asDsecError, DsecError } from '@dsec/std';
import type { CgroupLayout, Controller } from './cgroup-layout.ts';
import { poolName } from './limit-settings.ts';
import type { UpperDriver } from './upper-choice.ts';

/** What is known of where a sandbox's figures are. */
export interface SandboxPlace {
  /** `<name>-<generation>`. */
  readonly id: string;
  readonly slot: number;
  readonly pid: number;
  readonly startTicks: number;
  readonly upperDriver: UpperDriver;
  /** What the counter of kills stood at when the sandbox was made. */
  readonly oomKillsBefore: number;
}

const gone = (id: string, cause: unknown) =>
  new DsecError('state-conflict', `${id} does not run any more`, { cause });

/** The directory that a controller counts the sandbox in. */
function directoryOf(
  layout: CgroupLayout,
  { id, slot }: Pick<SandboxPlace, 'id' | 'slot'>,
  controller: Controller,
) {
  const place = layout.controllers[controller];
  if (place === undefined) return undefined;
  const name = place.version === 2 ? id : poolName(slot);
  return { version: place.version, path: join(place.directory, name) };
}

async function readNumber(path: string): Promise<number> {
  return Number((await readFile(path, 'utf8')).trim());
}

/** The number behind `key ` on a line of its own; 0 without. */
function numberOf(text: string, key: string): number {
  return Number(new RegExp(`^${key} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
}

/** Bytes charged to the sandbox now; undefined where nothing counts them. */
export async function memoryInUse(
  layout: CgroupLayout,
  place: Pick<SandboxPlace, 'id' | 'slot'>,
): Promise<number | undefined> {
  const memory = directoryOf(layout, place, 'memory');
  if (memory === undefined) return undefined;
  const name = memory.version === 2 ? 'memory.current' : 'memory.usage_in_bytes';
  return readNumber(join(memory.path, name));
}

async function memoryPeak(layout: CgroupLayout, place: SandboxPlace): Promise<number> {
  const memory = directoryOf(layout, place, 'memory');
  if (memory === undefined) return 0;
  return readNumber(
    join(memory.path, memory.version === 2 ? 'memory.peak' : 'memory.max_usage_in_bytes'),
  );
}

/**
 * Kills by the memory limit that its directory has counted: one of version 1 is pooled and counts on for the
 * next sandbox. Undefined where nothing counts them.
 */
function oomKills(
  layout: CgroupLayout,
  place: Pick<SandboxPlace, 'id' | 'slot'>,
): number | undefined {
  const memory = directoryOf(layout, place, 'memory');
  if (memory === undefined) return undefined;
  const file = memory.version === 2 ? 'memory.events' : 'memory.oom_control';
  return numberOf(readFileSync(join(memory.path, file), 'utf8'), 'oom_kill');
}

/** What is counted before anything of a sandbox could be killed; 0 where its directory is new. */
export function oomKillsAtFirst(
  layout: CgroupLayout,
  place: Pick<SandboxPlace, 'id' | 'slot'>,
): number {
  if (layout.controllers.memory?.version !== 1) return 0;
  try {
    return oomKills(layout, place) ?? 0;
  } catch {
    // The first sandbox in this slot: its directory is still to be made.
    return 0;
  }
}

async function countProcesses(layout: CgroupLayout, place: SandboxPlace): Promise<number> {
  const pids = directoryOf(layout, place, 'pids');
  if (pids !== undefined) return readNumber(join(pids.path, 'pids.current'));
  const text = await readFile(join(layout.unified, place.id, 'cgroup.procs'), 'utf8');
  return text.split('\n').filter((line) => line !== '').length;
}

/** What launcher, overlay and the file system itself have in an upper before anybody else. */
const OWN_INODES: Readonly<Record<UpperDriver, number>> = { tmpfs: 5, image: 14, btrfs: 0 };

/** The file system of a sandbox's root answers for its upper. */
async function upperUsage({ pid, startTicks, upperDriver }: SandboxPlace) {
  const found = await statfs(`/proc/${pid}/root`);
  // The number may have been given to another process between the two looks.
  if ((await readStartTicks(pid)) !== startTicks) throw new Error('another process');
  return {
    diskBytes: (found.blocks - found.bfree) * found.bsize,
    inodes: Math.max(0, found.files - found.ffree - OWN_INODES[upperDriver]),
  };
}

/** Field 22 of /proc/PID/stat: with the pid, it names one process of this boot. */
export async function readStartTicks(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name in parentheses may hold anything; no field behind it holds one.
  return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[19]);
}

/**
 * Reads what a sandbox uses. `state-conflict` when it has ended; `permission-denied` when this process
 * may not look at its root.
 */
export async function readStats(layout: CgroupLayout, place: SandboxPlace): Promise<SandboxStats> {
  try {
    const kills = oomKills(layout, place);
    const [cpu, memory, peak, pids, upper] = await Promise.all([
      readFile(join(layout.unified, place.id, 'cpu.stat'), 'utf8'),
      memoryInUse(layout, place),
      memoryPeak(layout, place),
      countProcesses(layout, place),
      upperUsage(place),
    ]);
    return {
      cpuUs: numberOf(cpu, 'usage_usec'),
      memoryBytes: memory ?? 0,
      memoryPeakBytes: peak,
      ...upper,
      pids,
      ...(kills === undefined ? {} : { oomKills: Math.max(0, kills - place.oomKillsBefore) }),
    };
  } catch (thrown) {
    const error = asDsecError(thrown);
    throw error.code === 'permission-denied' ? error : gone(place.id, thrown);
  }
}

/** Whether it was told to be frozen, though it may not have come to that yet. */
export async function isToBeFrozen(layout: CgroupLayout, id: string): Promise<boolean> {
  try {
    return (await readFile(join(layout.unified, id, 'cgroup.freeze'), 'utf8')).startsWith('1');
  } catch (thrown) {
    throw gone(id, thrown);
  }
}

/** Whether every process of the sandbox is stopped. `state-conflict` when it has ended. */
export async function isFrozen(layout: CgroupLayout, id: string): Promise<boolean> {
  try {
    const text = await readFile(join(layout.unified, id, 'cgroup.events'), 'utf8');
    return numberOf(text, 'frozen') === 1;
  } catch (thrown) {
    throw gone(id, thrown);
  }
}
