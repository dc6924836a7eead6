// @ts-check
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Digest of the content of some files and of anything else that a result depends on.
 *
 * @param {readonly string[]} paths Files; one that is absent counts as such.
 * @param {readonly string[]} [more]
 */
export function digestOf(paths, more = []) {
  const hash = createHash('sha256');
  const feed = (/** @type {string | Buffer} */ part) => hash.update(`${part.length}:`).update(part);
  for (const path of paths) {
    feed(path);
    feed(existsSync(path) ? readFileSync(path) : '(absent)');
  }
  for (const text of more) feed(text);
  return hash.digest('hex');
}

/** @param {string} path */
export function readStamp(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

/**
 * Says on disk that a result belongs to `digest`. Written last and by rename, so that a run that is
 * killed leaves the old stamp or none.
 *
 * @param {string} path
 * @param {string} digest
 */
export function writeStamp(path, digest) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.${process.pid}`, digest);
  renameSync(`${path}.${process.pid}`, path);
}
