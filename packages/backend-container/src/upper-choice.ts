import type { SandboxLimits } from '@dsec/protocol';
import { DsecError, formatBytes, MIB } from '@dsec/std';
import { shmBytesOf } from './sandbox-mounts.ts';

export type UpperDriver = 'tmpfs' | 'image' | 'btrfs';

/** What processes are left with when every file system in memory is full. */
const PROCESS_BYTES_MIN = 16 * MIB;

export interface UpperChoice {
  readonly driver: UpperDriver;
  /** A full writable layer is ENOSPC, and not the end of a process by its memory limit. */
  readonly fitsMemory: boolean;
}

/** Whether a writable layer in memory can be full without the sandbox running out of memory. */
export function fitsMemory({ memoryBytes, diskBytes }: Required<SandboxLimits>): boolean {
  return diskBytes + shmBytesOf(memoryBytes) + PROCESS_BYTES_MIN <= memoryBytes;
}

/**
 * Memory when it fits, as it is fastest and goes at once; else a file system of its own on disk
 * (THREATS C2). `unsupported` when neither is possible, unless a degraded one will do: btrfs, where the
 * kernel counts bytes and no inodes, is always that.
 */
export function chooseUpper(
  limits: Required<SandboxLimits>,
  drivers: readonly UpperDriver[],
  allowDegraded: boolean,
): UpperChoice {
  const fits = fitsMemory(limits);
  if (fits && drivers.includes('tmpfs')) return { driver: 'tmpfs', fitsMemory: true };
  const onDisk = drivers.find(
    (driver) => driver === 'image' || (driver === 'btrfs' && allowDegraded),
  );
  if (onDisk !== undefined) return { driver: onDisk, fitsMemory: true };
  if (allowDegraded) return { driver: 'tmpfs', fitsMemory: false };
  throw new DsecError(
    'unsupported',
    `this node keeps writable layers in memory, and one of ${formatBytes(limits.diskBytes)} does ` +
      `not fit a memory limit of ${formatBytes(limits.memoryBytes)}: ask for less disk, more ` +
      'memory, or allow a degraded sandbox',
    { details: { upperDriver: 'tmpfs' } },
  );
}
