// @ts-check
import { accessSync, constants, existsSync, readFileSync, realpathSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

export const NODE_MIN = [20, 19];
export const KERNEL_MIN = [6, 12];
export const NPM_MIN = [9, 0];

/**
 * @typedef {object} Host What this machine is, as far as the bootstrap cares.
 * @property {string} platform
 * @property {string} arch As in `process.arch`.
 * @property {'debian' | 'ubuntu' | 'other'} family
 * @property {string} id `debian-12`, `ubuntu-24.04`, …
 * @property {string} codename `bookworm`, …
 * @property {string} title For people.
 * @property {boolean} isRoot
 * @property {boolean} hasApt
 * @property {string} kernel
 * @property {string} node
 * @property {string} npm Empty when there is no npm.
 * @property {number} processors
 * @property {boolean} distributionNode Node is the distribution's own package (those are built as a
 *   shared library).
 * @property {string | undefined} nodeHeaders The prefix below which Node's own headers are, if they are
 *   there.
 */

/** @returns {Host} */
export function readHost() {
  const release_ = parseOsRelease(
    existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '',
  );
  const { variables } = process.config;
  return {
    ...release_,
    platform: process.platform,
    arch: process.arch,
    isRoot: process.getuid?.() === 0,
    hasApt: hasCommand('apt-get') && hasCommand('dpkg-query'),
    kernel: release(),
    node: process.versions.node,
    npm: readNpmVersion(),
    processors: cpus().length,
    distributionNode: 'node_shared' in variables && variables.node_shared === true,
    nodeHeaders: findNodeHeaders(),
  };
}

/**
 * @param {string} text The content of /etc/os-release.
 * @returns {Pick<Host, 'family' | 'id' | 'codename' | 'title'>}
 */
export function parseOsRelease(text) {
  /** @type {Map<string, string>} */
  const fields = new Map();
  for (const line of text.split('\n')) {
    const match = /^([A-Z_]+)=(?:"(.*)"|'(.*)'|(.*))$/.exec(line.trim());
    if (match?.[1] !== undefined) fields.set(match[1], match[2] ?? match[3] ?? match[4] ?? '');
  }
  const id = fields.get('ID') ?? 'unknown';
  const kin = [id, ...(fields.get('ID_LIKE') ?? '').split(' ')];
  const family = kin.includes('ubuntu') ? 'ubuntu' : kin.includes('debian') ? 'debian' : 'other';
  return {
    family,
    id: `${id}-${fields.get('VERSION_ID') ?? 'unknown'}`,
    codename: fields.get('VERSION_CODENAME') ?? '',
    title: fields.get('PRETTY_NAME') ?? id,
  };
}

/**
 * What makes this host unfit, each with what to do. Empty when it is fit.
 *
 * @param {Host} host
 * @returns {string[]}
 */
export function judgeHost(host) {
  const faults = [];
  if (host.platform !== 'linux') {
    return [
      `DSec runs on Linux only, this is ${host.platform}: use a Linux machine or virtual machine`,
    ];
  }
  if (isBelow(host.kernel, KERNEL_MIN)) {
    faults.push(
      `Linux ${host.kernel} is too old, DSec needs ${KERNEL_MIN.join('.')}: ` +
        `${kernelRemedy(host)}, then reboot`,
    );
  }
  if (isBelow(host.node, NODE_MIN)) {
    faults.push(
      `Node ${host.node} is too old, DSec needs ${NODE_MIN.join('.')} or newer: install a newer Node`,
    );
  }
  if (host.npm === '')
    faults.push(`npm is not beside ${process.execPath} nor in PATH: install npm 9 to 11`);
  else if (isBelow(host.npm, NPM_MIN)) {
    faults.push(`npm ${host.npm} is too old, DSec needs 9 to 11: npm install -g npm@10`);
  }
  return faults;
}

/**
 * @param {string} version
 * @param {readonly number[]} least
 */
export function isBelow(version, least) {
  const parts = version.split(/[.-]/).map(Number);
  for (const [index, want] of least.entries()) {
    const have = parts[index] ?? 0;
    if (have !== want) return !(have > want);
  }
  return false;
}

/** @param {string} command */
export function hasCommand(command) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return folder !== '';
    } catch {
      return false;
    }
  });
}

/** @param {Host} host */
function kernelRemedy(host) {
  if (host.id === 'debian-12') return 'apt-get install -t bookworm-backports linux-image-amd64';
  if (host.id === 'ubuntu-24.04') return 'apt-get install linux-generic-hwe-24.04';
  return 'install a newer kernel of your distribution';
}

/** npm's version without starting it (that takes as long as a whole idle bootstrap). */
function readNpmVersion() {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    try {
      const cli = realpathSync(join(folder, 'npm'));
      const manifest = JSON.parse(
        readFileSync(join(dirname(dirname(cli)), 'package.json'), 'utf8'),
      );
      if (manifest.name === 'npm') return String(manifest.version);
    } catch {
      // Not in this folder.
    }
  }
  return '';
}

/** Headers that fit the running Node; node-gyp would download them otherwise. */
function findNodeHeaders() {
  const prefix = dirname(dirname(realpathSync(process.execPath)));
  try {
    const header = readFileSync(join(prefix, 'include/node/node_version.h'), 'utf8');
    const [major, minor, patch] = ['MAJOR', 'MINOR', 'PATCH'].map(
      (part) => new RegExp(`#define NODE_${part}_VERSION (\\d+)`).exec(header)?.[1],
    );
    return `${major}.${minor}.${patch}` === process.versions.node ? prefix : undefined;
  } catch {
    return undefined;
  }
}
