// @ts-check
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hasCommand, parseOsRelease } from '../bootstrap/host.mjs';
import { privateApt } from './apt.mjs';
import { deriveSources, readSourceFiles } from './apt-sources.mjs';
import { cached, keyOf } from './cache.mjs';
import { LabUnavailable } from './failure.mjs';
import { chooseKernel } from './kernel-choice.mjs';

/** Beside the kernel: the initial file system's shell and tools, and AppArmor's compiler of profiles. */
const PACKAGES = ['busybox-static', 'apparmor'];
/** Changes when what is downloaded changes. */
const FORMAT = '1';

/**
 * @typedef {object} Parts
 * @property {string} root Folder with the files of all packages.
 * @property {string} release The kernel's.
 * @property {string[]} archives Names of the packages' files: name, version, architecture.
 */

/**
 * Brings the distribution's packages that the guest is made of into `folder`, once: a newer kernel is taken
 * when the cache is removed. Nothing is installed.
 *
 * @param {string} folder
 * @returns {Promise<import('./cache.mjs').Made & Parts>} Throws `LabUnavailable` where they cannot be had.
 */
export async function bringParts(folder) {
  const host = parseOsRelease(readFileSync('/etc/os-release', 'utf8'));
  if (process.arch !== 'x64') {
    throw new LabUnavailable(`the lab has no guest for ${process.arch}, only for x64`);
  }
  if (!hasCommand('apt-get') || !hasCommand('dpkg')) {
    throw new LabUnavailable(
      `the lab takes its kernel from apt, which ${host.title} does not have`,
    );
  }
  const made = await cached(folder, 'parts', keyOf([FORMAT, host.id]), (path) =>
    download(path, host),
  );
  const { release, archives } = JSON.parse(readFileSync(join(made.path, 'parts.json'), 'utf8'));
  return { ...made, root: join(made.path, 'root'), release, archives };
}

/**
 * @param {string} path
 * @param {ReturnType<typeof parseOsRelease>} host
 */
async function download(path, host) {
  const sources = deriveSources(readSourceFiles(), host.codename, host.id === 'debian-12');
  if (sources === '') {
    throw new LabUnavailable(
      `the archive of ${host.codename} is not among apt's sources, so the lab has no kernel`,
    );
  }
  const apt = privateApt(join(path, 'apt'), sources);
  await apt.update();
  const names = [...(await apt.names('linux-image-')), ...(await apt.names('linux-modules-'))];
  const kernel = chooseKernel(names);
  if (kernel === undefined) {
    throw new LabUnavailable(`${host.title} has no package with Linux 6.12 or newer for the lab`);
  }
  const root = join(path, 'root');
  const archives = await apt.unpack([kernel.image, ...kernel.modules, ...PACKAGES], root);
  if (!existsSync(join(root, 'boot', `vmlinuz-${kernel.release}`))) {
    throw new LabUnavailable(`${kernel.image} holds no kernel named vmlinuz-${kernel.release}`);
  }
  writeFileSync(join(path, 'parts.json'), JSON.stringify({ release: kernel.release, archives }));
  rmSync(join(path, 'apt'), { recursive: true });
}
