/** What a work tree tells beside its files: compiled residue goes, and every time becomes the same. */
import type { Dirent } from 'node:fs';
import { lutimes, readdir, rm } from 'node:fs/promises';
import { DsecError } from '@dsec/std';

/** Directories and files that tools leave behind; those that the kept commit has stay. */
const RESIDUE = [
  /^(__pycache__|\.pytest_cache|\.mypy_cache|\.ruff_cache|\.hypothesis|\.tox|\.nox|\.cache)$/,
  /^(\.nyc_output|\.coverage|coverage\.xml|\.eggs|\.git)$/,
  /(\.pyc|\.pyo|\.orig|\.rej|\.swp|~|\.egg-info|\.dist-info|\.egg-link)$/,
];
const DEPTH_MAX = 512;

/**
 * `tracked` are paths from the tree's root, a character a byte. Returns what was removed. `.git` of the tree
 * itself stays; those inside are repositories of their own, with histories of their own, and go.
 */
export async function normalizeTree(
  directory: string,
  tracked: ReadonlySet<string>,
  mtimeSeconds: number,
): Promise<readonly string[]> {
  const kept = withParents(tracked);
  const removed: string[] = [];
  const visit = async (path: string, depth: number): Promise<void> => {
    const options = { withFileTypes: true, encoding: 'buffer' } as const;
    const entries = await readdir(placeOf(directory, path), options);
    for (const entry of entries as unknown as Dirent<Buffer>[]) {
      const name = entry.name.toString('latin1');
      const below = path === '' ? name : `${path}/${name}`;
      const isOwnGit = below === '.git';
      if (!isOwnGit && !kept.has(below) && RESIDUE.some((pattern) => pattern.test(name))) {
        await rm(textOf(placeOf(directory, below)), { recursive: true, force: true });
        removed.push(below);
      } else if (entry.isDirectory() && depth < DEPTH_MAX) {
        await visit(below, depth + 1);
      } else {
        await touch(directory, below, mtimeSeconds);
      }
    }
    await touch(directory, path, mtimeSeconds);
  };
  await visit('', 0);
  return removed;
}

const placeOf = (directory: string, path: string): Buffer =>
  Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(path, 'latin1')]);

/** `rm` takes texts alone. */
function textOf(path: Buffer): string {
  const text = path.toString('utf8');
  if (Buffer.from(text).equals(path)) return text;
  throw new DsecError('unsupported', `remove ${JSON.stringify(text)} first: its name is not UTF-8`);
}

const touch = (directory: string, path: string, seconds: number) =>
  lutimes(placeOf(directory, path), seconds, seconds);

function withParents(tracked: ReadonlySet<string>): ReadonlySet<string> {
  const all = new Set(tracked);
  for (const path of tracked) {
    for (let cut = path.lastIndexOf('/'); cut > 0; cut = path.lastIndexOf('/', cut - 1)) {
      all.add(path.slice(0, cut));
    }
  }
  return all;
}
