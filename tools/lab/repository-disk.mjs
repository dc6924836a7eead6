// @ts-check
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { cached, keyOf } from './cache.mjs';
import { makeImage } from './image.mjs';

const FREE_BYTES = 256 * 2 ** 20;
/** At the top of the repository: not part of it, or on the disk of tools. */
const LEFT_OUT = ['.git', '.cache', 'node_modules', 'coverage'];

/**
 * @typedef {object} RepositoryEntry
 * @property {string} path
 * @property {'directory' | 'file' | 'symlink'} type
 * @property {number} mode Permission bits.
 * @property {Buffer} bytes Of a file; the target of a link.
 */

/**
 * The disk with the repository as it is now, built files included.
 *
 * @param {string} folder
 * @param {string} repository
 * @returns {Promise<import('./cache.mjs').Made>} An image.
 */
export function makeRepositoryDisk(folder, repository) {
  // Read once, so that the key is that of what is written, whoever edits meanwhile.
  const entries = readTree(repository, LEFT_OUT);
  const key = keyOf(
    entries.flatMap(({ path, type, mode, bytes }) => [path, type, `${mode}`, bytes]),
  );
  return cached(folder, 'repository', key, async (path) => {
    const stage = `${path}.stage`;
    try {
      writeTree(stage, entries);
      mkdirSync(join(stage, 'node_modules'));
      await makeImage(path, stage, FREE_BYTES);
    } finally {
      rmSync(stage, { recursive: true, force: true });
    }
  });
}

/**
 * @param {string} root
 * @param {readonly string[]} leftOut Names at the top.
 * @returns {RepositoryEntry[]} Sorted; sockets and the like are passed over, and what vanishes while it
 *   is read.
 */
export function readTree(root, leftOut) {
  /** @type {RepositoryEntry[]} */
  const entries = [];
  const visit = (/** @type {string} */ path) => {
    const place = join(root, path);
    const stat = lstatSync(place);
    const mode = stat.mode & 0o7777;
    if (stat.isDirectory()) {
      if (path !== '') entries.push({ path, type: 'directory', mode, bytes: Buffer.alloc(0) });
      for (const name of readdirSync(place).sort()) {
        if (path !== '' || !leftOut.includes(name)) visitIfThere(join(path, name));
      }
    } else if (stat.isFile()) {
      entries.push({ path, type: 'file', mode, bytes: readFileSync(place) });
    } else if (stat.isSymbolicLink()) {
      const bytes = readlinkSync(place, { encoding: 'buffer' });
      entries.push({ path, type: 'symlink', mode, bytes });
    }
  };
  const visitIfThere = (/** @type {string} */ path) => {
    try {
      visit(path);
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error;
    }
  };
  visit('');
  return entries;
}

/**
 * @param {string} root
 * @param {readonly RepositoryEntry[]} entries
 */
export function writeTree(root, entries) {
  mkdirSync(root, { recursive: true });
  for (const { path, type, mode, bytes } of entries) {
    const place = join(root, path);
    mkdirSync(dirname(place), { recursive: true });
    if (type === 'directory') mkdirSync(place, { recursive: true, mode });
    else if (type === 'file') writeFileSync(place, bytes, { mode });
    else symlinkSync(bytes, place);
  }
}
