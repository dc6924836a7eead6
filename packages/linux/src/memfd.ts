import { closeSync, writeSync } from 'node:fs';
import { cString } from './byte-path.ts';
import { syscall } from './syscall.ts';

const MFD_CLOEXEC = 1;
const MFD_ALLOW_SEALING = 2;
const MFD_NOEXEC_SEAL = 0x08;
const MFD_EXEC = 0x10;
const F_ADD_SEALS = 1033;
const F_GET_SEALS = 1034;
/** Seals themselves, shrinking, growing, writing, and the execute permission. */
const SEAL_ALL = 0x2f;

/**
 * A file in memory with these bytes that nobody can change any more, its maker included. Returns its
 * descriptor. Programs run from one, or handed over by one, cannot be overwritten through /proc/PID/exe
 * (CVE-2019-5736).
 */
export function createSealedMemfd(
  name: string,
  bytes: Uint8Array,
  options: { readonly executable?: boolean } = {},
): number {
  const flags = MFD_CLOEXEC | MFD_ALLOW_SEALING | (options.executable ? MFD_EXEC : MFD_NOEXEC_SEAL);
  const fd = syscall('memfd_create', [cString(name), flags], name);
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
    syscall('fcntl', [fd, F_ADD_SEALS, SEAL_ALL], name);
    return fd;
  } catch (thrown) {
    closeSync(fd);
    throw thrown;
  }
}

/** Whether a descriptor is a memfd that is sealed against every change. */
export function isSealed(fd: number): boolean {
  return (syscall('fcntl', [fd, F_GET_SEALS]) & SEAL_ALL) === SEAL_ALL;
}
