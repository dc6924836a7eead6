// @ts-check
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The folders of the npm workspaces, in the order of package.json.
 *
 * @param {string} root
 * @returns {string[]} Relative to the root.
 */
export function workspaceFolders(root) {
  /** @type {string[]} */
  const patterns = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).workspaces ?? [];
  return patterns
    .flatMap((pattern) => {
      if (!pattern.endsWith('/*')) return [pattern];
      const parent = pattern.slice(0, -2);
      return readdirSync(join(root, parent))
        .sort()
        .map((name) => join(parent, name));
    })
    .filter((folder) => existsSync(join(root, folder, 'package.json')));
}

/**
 * Every file below a folder whose name ends in `ending`, sorted.
 *
 * @param {string} folder
 * @param {string} ending
 * @returns {string[]}
 */
export function filesBelow(folder, ending) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules'))
    .sort()
    .map((name) => join(folder, name));
}
