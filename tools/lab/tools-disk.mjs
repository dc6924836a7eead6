// @ts-check
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { loadModules, partPath } from './boot.mjs';
import { cached, keyOf } from './cache.mjs';
import {
  copyFiles,
  hostPrograms,
  librariesOf,
  makeSkeleton,
  nodeScripts,
} from './host-programs.mjs';
import { copyTree, makeImage } from './image.mjs';
import { GUEST_MODULES, moduleIndexes } from './modules.mjs';

const FREE_BYTES = 2 * 2 ** 30;
/** Changes when this file makes another disk of the same parts. */
const FORMAT = '3';
/** Of no use to a test run in the guest, and large. */
const LEFT_OUT = ['.cache', '.vite', '.vite-temp', '@biomejs', '@types', 'typescript'];

/** What AppArmor's compiler reads; not every release has all of it. */
const APPARMOR_FILES = ['etc/apparmor', 'etc/apparmor.d', 'usr/share/apparmor-features'];

const ETC = {
  passwd: 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n',
  group: 'root:x:0:\nnogroup:x:65534:\n',
  hosts: '127.0.0.1 localhost lab\n::1 localhost\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
};

/**
 * The guest's root disk: programs of this machine with their libraries, Node, busybox, AppArmor's compiler,
 * kernel modules, and the repository's npm packages.
 *
 * @param {string} folder
 * @param {import('./parts.mjs').Parts} parts
 * @param {string} repository
 * @param {string} startScript Text of `guest/start.sh`.
 * @returns {Promise<import('./cache.mjs').Made>} An image.
 */
export function makeToolsDisk(folder, parts, repository, startScript) {
  const compiler = partPath(parts, 'sbin/apparmor_parser');
  const programs = hostPrograms();
  const packages = join(repository, 'node_modules');
  const key = keyOf([
    startScript,
    JSON.stringify([FORMAT, ETC, APPARMOR_FILES, LEFT_OUT, GUEST_MODULES, parts.archives]),
    ...[...programs.files, programs.node].map(stateOf),
    packagesState(packages),
  ]);
  return cached(folder, 'tools', key, async (path) => {
    const stage = `${path}.stage`;
    try {
      makeSkeleton(stage);
      const libraries = librariesOf([...programs.files, programs.node, compiler]);
      const node = [programs.node, ...libraries.filter((path) => path.includes('/libnode.'))];
      copyFiles([...programs.files, ...libraries, ...nodeScripts(node)], stage);
      addOwnFiles(stage, parts, programs.node, startScript);
      addModules(stage, parts);
      await addPackages(stage, packages);
      await makeImage(path, stage, FREE_BYTES);
    } finally {
      rmSync(stage, { recursive: true, force: true });
    }
  });
}

/**
 * @param {string} stage
 * @param {import('./parts.mjs').Parts} parts
 * @param {string} node
 * @param {string} startScript
 */
function addOwnFiles(stage, parts, node, startScript) {
  for (const [name, text] of Object.entries(ETC)) writeFileSync(join(stage, 'etc', name), text);
  const local = join(stage, 'usr/local/bin');
  mkdirSync(local, { recursive: true });
  copyFileSync(node, join(local, 'node'));
  copyFileSync(partPath(parts, 'bin/busybox'), join(stage, 'lab/busybox'));
  // The kernel calls it to load modules on demand.
  rmSync(join(stage, 'usr/sbin/modprobe'), { force: true });
  for (const name of ['modprobe', 'hostname', 'poweroff']) {
    const place = join(stage, 'usr/sbin', name);
    if (!existsSync(place)) symlinkSync('/lab/busybox', place);
  }
  writeFileSync(join(stage, 'lab/start.sh'), startScript);
  chmodSync(join(stage, 'lab/start.sh'), 0o755);
  copyFileSync(partPath(parts, 'sbin/apparmor_parser'), join(stage, 'usr/sbin/apparmor_parser'));
  for (const path of APPARMOR_FILES) {
    const source = join(parts.root, path);
    if (existsSync(source)) cpSync(source, join(stage, path), { recursive: true });
  }
  chmodSync(join(stage, 'tmp'), 0o1777);
  chmodSync(join(stage, 'var/tmp'), 0o1777);
}

/**
 * @param {string} stage
 * @param {import('./parts.mjs').Parts} parts
 */
function addModules(stage, parts) {
  const folder = join(stage, 'lib/modules', parts.release);
  mkdirSync(folder, { recursive: true });
  const modules = loadModules(parts, GUEST_MODULES);
  const fileOf = (/** @type {string} */ name) => `${name}.ko`;
  for (const { name, bytes } of modules) writeFileSync(join(folder, fileOf(name)), bytes);
  for (const [name, text] of Object.entries(moduleIndexes(modules, fileOf))) {
    writeFileSync(join(folder, name), text);
  }
  const builtin = partPath(parts, join('lib/modules', parts.release, 'modules.builtin'));
  copyFileSync(builtin, join(folder, 'modules.builtin'));
}

/**
 * @param {string} stage
 * @param {string} packages
 */
async function addPackages(stage, packages) {
  mkdirSync(join(stage, 'node_modules'));
  if (!existsSync(packages)) return;
  for (const name of readdirSync(packages)) {
    if (LEFT_OUT.includes(name)) continue;
    await copyTree(join(packages, name), join(stage, 'node_modules', name));
  }
}

/**
 * A file's identity without reading it: enough for what package managers install.
 *
 * @param {string} path
 */
function stateOf(path) {
  const { size, mtimeMs } = statSync(path);
  return `${path} ${realpathSync(path)} ${size} ${mtimeMs}`;
}

/** npm's own record of what it installed. @param {string} packages */
function packagesState(packages) {
  const record = join(packages, '.package-lock.json');
  return existsSync(record) ? readFileSync(record) : 'no packages';
}
