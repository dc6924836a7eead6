// @ts-check
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { chooseAccelerator } from './accelerator.mjs';
import { makeBoot } from './boot.mjs';
import { GuestFailure } from './failure.mjs';
import { runGuest } from './guest.mjs';
import { bringParts } from './parts.mjs';
import { qemuVersion } from './qemu.mjs';
import { makeRepositoryDisk } from './repository-disk.mjs';
import { makeToolsDisk } from './tools-disk.mjs';

export const REPOSITORY = resolve(import.meta.dirname, '../..');
/** Where the guest has the repository. */
export const GUEST_REPOSITORY = '/repo';

const BOOTS_MAX = 3;
const BOOT_TIMEOUT_MS = 90_000;
const PROBE_TIMEOUT_MS = 15_000;

/**
 * @typedef {object} Lab Everything that a guest is started from, in the cache.
 * @property {string} qemu Version.
 * @property {string} release The guest's kernel.
 * @property {'kvm' | 'tcg'} accelerator
 * @property {string} kernel Path.
 * @property {string} initrd Path.
 * @property {string[]} disks Paths.
 */

/**
 * Makes what is not in the cache yet, or no longer up to date. Changes nothing else on this machine.
 *
 * @param {(name: string, made: import('./cache.mjs').Made) => void} onMade
 * @returns {Promise<Lab>} Throws `LabUnavailable` where this machine cannot have a lab.
 */
export async function prepareLab(onMade) {
  const cache = join(REPOSITORY, '.cache/lab');
  const script = (/** @type {string} */ name) =>
    readFileSync(join(import.meta.dirname, 'guest', name), 'utf8');
  const qemu = qemuVersion();
  const parts = await bringParts(cache);
  onMade('packages', parts);
  const boot = await makeBoot(cache, parts, script('init.sh'));
  onMade('kernel and initrd', boot);
  const tools = await makeToolsDisk(cache, parts, REPOSITORY, script('start.sh'));
  onMade('disk of tools', tools);
  const repository = await makeRepositoryDisk(cache, REPOSITORY);
  onMade('disk of the repository', repository);
  const lab = {
    qemu,
    release: parts.release,
    kernel: join(boot.path, 'kernel'),
    initrd: join(boot.path, 'initrd'),
    disks: [tools.path, repository.path],
  };
  const probe = () => runs({ ...lab, accelerator: 'kvm' });
  const accelerator = await chooseAccelerator(cache, qemu, probe);
  return { ...lab, accelerator };
}

/**
 * Runs one job. A guest that dies before its job starts is booted again, and `job.stderr` says so: software
 * emulation is not without faults.
 *
 * @param {Lab} lab
 * @param {number} memoryMib
 * @param {Omit<import('./guest.mjs').Job, 'bootTimeoutMs'>} job
 * @returns {Promise<import('./guest.mjs').JobResult>} Throws `GuestFailure`.
 */
export async function runInLab(lab, memoryMib, job) {
  for (let boot = 1; ; boot++) {
    try {
      return await runGuest({ ...lab, memoryMib }, { ...job, bootTimeoutMs: BOOT_TIMEOUT_MS });
    } catch (error) {
      const mayRetry = error instanceof GuestFailure && error.kind === 'boot';
      if (!mayRetry || boot === BOOTS_MAX || job.signal?.aborted) throw error;
      job.stderr.write(`lab: boot ${boot} of at most ${BOOTS_MAX} failed: ${error.message}\n`);
    }
  }
}

/** @param {Lab} lab */
async function runs(lab) {
  const job = {
    script: 'true',
    timeoutMs: PROBE_TIMEOUT_MS,
    bootTimeoutMs: PROBE_TIMEOUT_MS,
    stdout: new PassThrough().resume(),
    stderr: new PassThrough().resume(),
  };
  try {
    return (await runGuest({ ...lab, memoryMib: 512 }, job)).code === 0;
  } catch (error) {
    if (error instanceof GuestFailure) return false;
    throw error;
  }
}
