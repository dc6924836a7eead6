// @ts-check
import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';

/** Entries of one name that are kept, newest first: those of the last few states of the repository. */
const KEPT_MAX = 3;
/** After so long, what a maker left beside its place is nobody's. */
const ABANDONED_MS = 3_600_000;

/**
 * @typedef {object} Made
 * @property {string} path
 * @property {boolean} reused False when it was made just now.
 * @property {number} tookMs
 */

/**
 * A file or folder that depends on nothing but its key. It is made beside its place and then renamed, so
 * that a crash leaves no half one and two makers at once do no harm. Older ones of the same name are
 * removed; whoever has one open keeps it.
 *
 * @param {string} folder
 * @param {string} name
 * @param {string} key
 * @param {(path: string) => Promise<void>} make
 * @returns {Promise<Made>}
 */
export async function cached(folder, name, key, make) {
  const startedMs = performance.now();
  const path = join(folder, `${name}-${key}`);
  const reused = existsSync(path);
  if (reused) {
    utimesSync(path, new Date(), new Date());
  } else {
    const fresh = join(folder, `.${name}-${key}.${process.pid}`);
    mkdirSync(folder, { recursive: true });
    try {
      await make(fresh);
      placeAt(fresh, path);
    } finally {
      rmSync(fresh, { recursive: true, force: true });
    }
    prune(folder, `${name}-`);
  }
  return { path, reused, tookMs: performance.now() - startedMs };
}

/**
 * @param {readonly (string | Buffer)[]} parts
 * @returns {string} 32 hexadecimal digits that differ when any part or the order differs.
 */
export function keyOf(parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex').slice(0, 32);
}

/**
 * @param {string} fresh
 * @param {string} path
 */
function placeAt(fresh, path) {
  try {
    renameSync(fresh, path);
  } catch (error) {
    // A folder that somebody else made meanwhile cannot be replaced, and need not be.
    if (!existsSync(path)) throw error;
  }
}

/**
 * @param {string} folder
 * @param {string} prefix
 */
function prune(folder, prefix) {
  const paths = readdirSync(folder)
    .filter((entry) => entry.startsWith(prefix))
    .map((entry) => join(folder, entry))
    .map((path) => ({ path, usedMs: lstatIfThere(path)?.mtimeMs ?? 0 }))
    .sort((a, b) => b.usedMs - a.usedMs);
  const abandoned = readdirSync(folder)
    .filter((entry) => entry.startsWith(`.${prefix}`))
    .map((entry) => join(folder, entry))
    .filter((path) => Date.now() - (lstatIfThere(path)?.mtimeMs ?? 0) > ABANDONED_MS);
  for (const path of [...paths.slice(KEPT_MAX).map((entry) => entry.path), ...abandoned]) {
    rmSync(path, { recursive: true, force: true });
  }
}

/** Another maker may remove it at the same time. @param {string} path */
function lstatIfThere(path) {
  return lstatSync(path, { throwIfNoEntry: false });
}
