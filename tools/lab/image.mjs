// @ts-check
import { rmSync, truncateSync, writeFileSync } from 'node:fs';
import { run } from '../bootstrap/run.mjs';
import { LabUnavailable } from './failure.mjs';

const TIMEOUT_MS = 300_000;
/** Where the programs of this file come from. */
const PACKAGES = new Map([
  ['mke2fs', 'e2fsprogs'],
  ['du', 'coreutils'],
  ['cp', 'coreutils'],
]);

/**
 * Makes a disk image (ext4, no journal: it lives for one boot) that holds a copy of a folder. The file is
 * sparse.
 *
 * @param {string} path Of the new image.
 * @param {string} folder
 * @param {number} freeBytes Room for the guest.
 */
export async function makeImage(path, folder, freeBytes) {
  const usedBytes = Number((await output('du', ['-s', '-B1', folder])).split('\t')[0]);
  writeFileSync(path, '');
  // An eighth more, for inodes and tables.
  truncateSync(path, Math.ceil(((usedBytes * 9) / 8 + freeBytes) / 4096) * 4096);
  const format = ['-q', '-F', '-t', 'ext4', '-O', '^has_journal', '-m', '0', '-b', '4096'];
  await output('mke2fs', [...format, '-E', 'root_owner=0:0', '-d', folder, path]);
}

/**
 * Copies a tree by hard links, or byte by byte where that is not possible.
 *
 * @param {string} source
 * @param {string} target Does not exist.
 */
export async function copyTree(source, target) {
  const linked = await run('cp', ['-al', source, target], { timeoutMs: TIMEOUT_MS });
  if (linked.code === 0) return;
  rmSync(target, { recursive: true, force: true });
  await output('cp', ['-a', source, target]);
}

/**
 * @param {string} command
 * @param {string[]} args
 */
async function output(command, args) {
  // mke2fs is in sbin, which is not in everybody's PATH.
  const env = { LC_ALL: 'C', PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
  const result = await run(command, args, { env, timeoutMs: TIMEOUT_MS });
  if (result.code === 127) {
    throw new LabUnavailable(`the lab needs ${command} (package ${PACKAGES.get(command)})`);
  }
  if (result.code !== 0) throw new Error(`${command} ${args.join(' ')}:\n${result.tail}`);
  return result.stdout;
}
