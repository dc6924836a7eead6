import { type FileHandle, lstat, open, readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { tryLockFile } from '@dsec/linux';
import {
  asDsecError,
  type Clock,
  DsecError,
  HOUR_MS,
  parseName,
  type Random,
  systemClock,
  systemRandom,
} from '@dsec/std';
import { crashPoint } from './crash-point.ts';
import { createDirectory } from './durable-file.ts';

/**
 * A stage is a directory where one process prepares what it will publish by rename: in a store's `tmp/`,
 * or in a node directory's. The process holds a lock (flock) on the stage's `owner` file: it ends with
 * the process however that dies, which a pid in a file does not tell. `sweepStages` removes stages whose
 * lock is free.
 */
export interface Stage {
  readonly path: string;
  /** Removes the stage and gives up the lock. */
  discard(): Promise<void>;
}

/**
 * How long a stage must have been untouched before it is swept; for file systems where locks do not reach
 * other nodes.
 */
export const STAGE_AGE_MS = HOUR_MS;

export function newStageName(random: Random = systemRandom): string {
  return Buffer.from(random.bytes(16)).toString('hex');
}

/** Creates `<stagesDirectory>/<name>`. Leaves nothing when it fails. */
export async function createStage(stagesDirectory: string, name: string): Promise<Stage> {
  const path = join(stagesDirectory, parseName(name, 'stage'));
  await createDirectory(path);
  crashPoint('stage.before-owner');
  let owner: FileHandle | undefined;
  const discard = async () => {
    try {
      await removeStage(path);
    } finally {
      await owner?.close();
    }
  };
  try {
    owner = await open(join(path, 'owner'), 'wx', 0o644);
    if (!tryLockFile(owner.fd, 'exclusive')) {
      throw new DsecError('conflict', `stage ${path} is being swept`);
    }
    // For people: liveness is the lock.
    await owner.writeFile(JSON.stringify({ pid: process.pid, hostname: hostname() }));
  } catch (thrown) {
    await discard();
    throw asDsecError(thrown);
  }
  crashPoint('stage.after-owner');
  return { path, discard };
}

export interface SweepOptions {
  /** Younger stages stay, whoever owns them. Default `STAGE_AGE_MS`. */
  readonly ageMs?: number;
  readonly clock?: Clock;
}

/**
 * Removes the stages of dead owners. Returns the names of those removed; one that cannot be removed stays
 * and is no error. Any number of sweepers may run at once.
 */
export async function sweepStages(
  stagesDirectory: string,
  options: SweepOptions = {},
): Promise<string[]> {
  const { ageMs = STAGE_AGE_MS, clock = systemClock } = options;
  const swept: string[] = [];
  for (const name of await listStages(stagesDirectory)) {
    const path = join(stagesDirectory, name);
    const touchedMs = await newestChange(path).catch(() => undefined);
    // A time far in the future says nothing either: the clock was set back. The lock alone decides then.
    if (touchedMs === undefined || Math.abs(clock.wallMs() - touchedMs) < ageMs) continue;
    // What somebody else owns or planted there must not stop whoever only wanted to make room.
    if (await sweepStage(path).catch(() => false)) swept.push(name);
  }
  return swept;
}

async function listStages(stagesDirectory: string): Promise<string[]> {
  try {
    const entries = await readdir(stagesDirectory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (thrown) {
    throw asDsecError(thrown);
  }
}

/** Removes one stage if its owner is dead. */
export async function sweepStage(path: string): Promise<boolean> {
  const owner = await openOwner(path);
  try {
    if (owner !== undefined && !tryLockFile(owner.fd, 'exclusive')) return false;
    await removeStage(path);
    return true;
  } finally {
    await owner?.close();
  }
}

/** Absent when the maker died before it was alive, or a sweeper at its end. */
async function openOwner(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(join(path, 'owner'), 'r+');
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code === 'not-found') return undefined;
    throw error;
  }
}

/** The owner file goes last: a sweep that dies half-way leaves a stage that the next one still recognises. */
async function removeStage(path: string): Promise<void> {
  try {
    for (const name of await readdir(path)) {
      if (name !== 'owner') await rm(join(path, name), { recursive: true, force: true });
    }
    await rm(path, { recursive: true, force: true });
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code !== 'not-found') throw error;
  }
}

/**
 * When the stage or a file in it (two levels deep, which is all there is) changed last; undefined when it
 * is gone.
 */
async function newestChange(path: string): Promise<number | undefined> {
  try {
    let newest = (await lstat(path)).mtimeMs;
    for (const name of await readdir(path, { recursive: true })) {
      newest = Math.max(newest, (await lstat(join(path, name))).mtimeMs);
    }
    return newest;
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code === 'not-found') return undefined;
    throw error;
  }
}
