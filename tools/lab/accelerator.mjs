// @ts-check
import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { keyOf } from './cache.mjs';

const KVM = '/dev/kvm';

/**
 * KVM where a guest really runs on it, else software emulation: the device may exist and run nothing, as
 * inside many virtual machines. The answer is kept until this machine reboots or has another QEMU.
 *
 * @param {string} folder For the answer.
 * @param {string} version Of QEMU.
 * @param {() => Promise<boolean>} probe Boots a guest on KVM within a time limit.
 * @returns {Promise<'kvm' | 'tcg'>}
 */
export async function chooseAccelerator(folder, version, probe) {
  try {
    accessSync(KVM, constants.R_OK | constants.W_OK);
  } catch {
    return 'tcg';
  }
  const boot = readFileSync('/proc/sys/kernel/random/boot_id');
  const path = join(folder, `accelerator-${keyOf([boot, version])}`);
  if (!existsSync(path)) {
    const answer = (await probe()) ? 'kvm' : 'tcg';
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, answer);
  }
  return readFileSync(path, 'utf8') === 'kvm' ? 'kvm' : 'tcg';
}
