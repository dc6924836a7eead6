// @ts-check
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { BootstrapFailure } from './failure.mjs';
import { UNPACKED } from './packages.mjs';
import { digestOf, readStamp, writeStamp } from './stamp.mjs';

const TIMEOUT_MS = 600_000;

/** @typedef {import('./packages.mjs').UnpackedRow} UnpackedRow */
/** @typedef {import('./step.mjs').Context} Context */

/** @type {import('./step.mjs').Step} */
export const downloadsStep = {
  name: 'downloads',

  async missing({ root, host }) {
    return neededRows(host)
      .filter((row) => readStamp(stampPath(root, row)) !== digest(row))
      .map((row) => row.name);
  },

  async bring(context, missing) {
    for (const row of neededRows(context.host).filter((needed) => missing.includes(needed.name))) {
      context.report.note(`downloading ${row.package} (${row.why}), not installed`);
      await bringOne(context, row);
    }
  },

  async summary({ root, host, run }) {
    const parts = [];
    for (const row of UNPACKED) {
      if (!neededRows(host).includes(row)) {
        parts.push(`${row.name}: not for ${host.title} on ${host.arch}`);
      } else if (row.versionOf === undefined) {
        parts.push(row.name);
      } else {
        const [program = '', ...args] = row.versionOf;
        const path = join(root, '.cache', row.name, 'bin', program);
        const { tail } = await run(path, args, { timeoutMs: TIMEOUT_MS });
        parts.push(`${row.name}: ${tail.split('\n')[0]}`);
      }
    }
    return parts.join(', ');
  },
};

/** @param {import('./host.mjs').Host} host */
function neededRows(host) {
  return UNPACKED.filter(
    (row) => host.hasApt && (row.arch === undefined || row.arch.includes(host.arch)),
  );
}

/** @param {string} root @param {UnpackedRow} row */
const stampPath = (root, row) => join(root, '.cache', row.name, 'stamp');

/** The row and the host's release decide what is unpacked. @param {UnpackedRow} row */
function digest(row) {
  return digestOf(['/etc/os-release'], [JSON.stringify(row)]);
}

/** @param {Context} context @param {UnpackedRow} row */
async function bringOne(context, row) {
  const { root, host, run } = context;
  const target = join(root, '.cache', row.name);
  const work = `${target}.new`;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(join(work, 'deb'), { recursive: true });
  mkdirSync(join(work, 'root'));
  const packages = await prepare(context, row);
  const download = await run('apt-get', ['download', '-q', ...packages], {
    cwd: join(work, 'deb'),
    env: { LC_ALL: 'C' },
    timeoutMs: TIMEOUT_MS,
    onLine: context.report.progress,
  });
  if (download.code !== 0) throw failureOf(`apt-get download ${packages.join(' ')}`, download.tail);
  for (const deb of readdirSync(join(work, 'deb'))) {
    const unpacked = await run('dpkg', ['-x', join(work, 'deb', deb), join(work, 'root')], {
      timeoutMs: TIMEOUT_MS,
    });
    if (unpacked.code !== 0) throw failureOf(`dpkg -x ${deb}`, unpacked.tail);
  }
  rmSync(join(work, 'deb'), { recursive: true });
  writeWrappers(work, row.programs ?? [], multiarchOf(host.arch));
  rmSync(target, { recursive: true, force: true });
  renameSync(work, target);
  writeStamp(stampPath(root, row), digest(row));
}

/**
 * Says what to download, as arguments of `apt-get download`.
 *
 * @param {Context} context
 * @param {UnpackedRow} row
 * @returns {Promise<string[]>}
 */
async function prepare({ host, apt, run }, row) {
  if (host.isRoot) await apt.update();
  if (row.libraries !== true) return [row.package];
  const args = ['install', '-s', '-q', '--no-install-recommends', row.package];
  const plan = await run('apt-get', args, { env: { LC_ALL: 'C' }, timeoutMs: TIMEOUT_MS });
  if (plan.code !== 0) throw failureOf(`apt-get install -s ${row.package}`, plan.tail);
  // "Inst liblz4-1 (1.9.4-1 Debian:12.1/stable [amd64])": what the host lacks.
  const lacking = [...plan.stdout.matchAll(/^Inst (\S+) (?:\[\S+\] )?\((\S+) /gm)];
  const wanted = lacking.map((match) => `${match[1]}=${match[2]}`);
  const hasItself = lacking.some((match) => match[1] === row.package);
  return hasItself ? wanted : [...wanted, row.package];
}

/**
 * A wrapper finds the libraries that were unpacked beside its program before those of the host.
 *
 * @param {string} folder
 * @param {readonly string[]} programs
 * @param {string} multiarch
 */
function writeWrappers(folder, programs, multiarch) {
  mkdirSync(join(folder, 'bin'));
  for (const program of programs) {
    if (!existsSync(join(folder, 'root', program))) {
      throw failureOf(`${program} is not in the package`, `see ${folder}`);
    }
    const path = join(folder, 'bin', basename(program));
    writeFileSync(
      path,
      `#!/bin/sh\nroot="$(dirname "$(readlink -f "$0")")/../root"\n` +
        `export LD_LIBRARY_PATH="$root/usr/lib/${multiarch}:$root/lib/${multiarch}"\n` +
        `exec "$root/${program}" "$@"\n`,
    );
    chmodSync(path, 0o755);
  }
}

/** @param {string} arch */
function multiarchOf(arch) {
  return arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu';
}

/** @param {string} what @param {string} output */
function failureOf(what, output) {
  return new BootstrapFailure(
    'packages',
    `${what} failed:\n${output}`,
    'check that the archives are reachable (apt-get update), then start again',
  );
}
