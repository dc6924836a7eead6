// @ts-check
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** Packages of this machine whose programs the guest has as well; each is there on Debian and Ubuntu. */
const PACKAGES = [
  ...['bash', 'dash', 'coreutils', 'util-linux', 'mount', 'findutils', 'grep', 'sed', 'tar'],
  ...['gzip', 'procps', 'iproute2', 'e2fsprogs', 'libc-bin'],
];

/** Their libraries come whole, as npm packages with native parts link to any of them. */
const LIBRARY_PACKAGES = ['libc6', 'libgcc-s1', 'libstdc++6'];

const PROGRAM = /^(\/usr)?\/s?bin\/[^/]+$/;
const NODE_SCRIPT = /\/usr\/share\/nodejs\/[\w./-]+\.js/g;
const LIBRARY = /^(\/usr)?\/lib\/[^/]+\/[^/]+\.so[.\d]*$/;

/** Folders that lead to those below `usr` since Debian and Ubuntu merged them. */
const MERGED = ['bin', 'sbin', 'lib', 'lib64'];

/**
 * Files of this machine that the guest has as well: some packages' programs, libraries of C and C++, and
 * Node.
 *
 * @returns {{ files: string[], node: string }} Absolute paths.
 */
export function hostPrograms() {
  const files = [...filesOf(PACKAGES, PROGRAM), ...filesOf(LIBRARY_PACKAGES, LIBRARY)];
  return { files, node: realpathSync(process.execPath) };
}

/**
 * The shared libraries of programs, loader included.
 *
 * @param {readonly string[]} programs
 * @returns {string[]}
 */
export function librariesOf(programs) {
  // Ends with 1 where a file is a script or linked statically, and lists the rest.
  const listed = spawnSync('ldd', [...programs], { encoding: 'utf8', env: { LC_ALL: 'C' } }).stdout;
  const lines = listed.split('\n');
  const missing = lines.filter((line) => line.endsWith('not found'));
  if (missing.length > 0) throw new Error(`libraries that this machine lacks:${missing.join()}`);
  const paths = lines.map((line) => /(?:=> )?(\/\S+) \(0x/.exec(line)?.[1]);
  return [...new Set(paths.filter((path) => path !== undefined))];
}

/**
 * Scripts outside of Node that are part of it: Debian's own Node reads them when it starts.
 *
 * @param {readonly string[]} binaries Node and the library that it is in.
 * @returns {string[]} Paths of those that are there.
 */
export function nodeScripts(binaries) {
  const names = binaries.flatMap((path) => readFileSync(path, 'latin1').match(NODE_SCRIPT) ?? []);
  return [...new Set(names)].filter((path) => existsSync(path));
}

/**
 * Copies files to the same places below `root`. A link is copied with what it leads to.
 *
 * @param {readonly string[]} paths
 * @param {string} root
 */
export function copyFiles(paths, root) {
  const seen = new Set();
  const copy = (/** @type {string} */ path) => {
    const place = join(realpathSync(dirname(path)), path.slice(path.lastIndexOf('/') + 1));
    if (seen.has(place)) return;
    seen.add(place);
    const target = join(root, place);
    mkdirSync(dirname(target), { recursive: true });
    if (!lstatSync(place).isSymbolicLink()) {
      copyFileSync(place, target);
      return;
    }
    symlinkSync(readlinkSync(place), target);
    copy(resolve(dirname(place), readlinkSync(place)));
  };
  for (const path of paths) copy(path);
}

/** The folders and links at the top of a root file system. @param {string} root */
export function makeSkeleton(root) {
  const folders = [
    'dev',
    'proc',
    'sys',
    'run',
    'tmp',
    'root',
    'mnt',
    'etc',
    'repo',
    'lab',
    'var/tmp',
  ];
  for (const folder of [...folders, 'usr/bin', 'usr/sbin']) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  for (const name of MERGED) {
    mkdirSync(join(root, 'usr', name), { recursive: true });
    symlinkSync(join('usr', name), join(root, name));
  }
}

/**
 * @param {readonly string[]} packages Those that are not installed are passed over.
 * @param {RegExp} pattern
 * @returns {string[]}
 */
function filesOf(packages, pattern) {
  const listed = spawnSync('dpkg', ['-L', ...packages], { encoding: 'utf8' }).stdout;
  return listed.split('\n').filter((path) => pattern.test(path) && existsSync(path));
}
