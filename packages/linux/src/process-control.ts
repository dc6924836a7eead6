import { constants } from 'node:os';
import { syscallError } from './errno.ts';
import { rawSyscall, syscall } from './syscall.ts';

/** Limits, flags and signals of processes. */

/** Numbers of `RLIMIT_*`, the same on x86_64 and aarch64. */
const RESOURCES = {
  cpu: 0,
  fsize: 1,
  data: 2,
  stack: 3,
  core: 4,
  rss: 5,
  nproc: 6,
  nofile: 7,
  memlock: 8,
  as: 9,
  locks: 10,
  sigpending: 11,
  msgqueue: 12,
  nice: 13,
  rtprio: 14,
  rttime: 15,
} as const;

export type ResourceName = keyof typeof RESOURCES;

/** A soft and a hard limit; `Infinity` where there is none. */
export interface ResourceLimit {
  readonly soft: number;
  readonly hard: number;
}

const NO_LIMIT = 0xffff_ffff_ffff_ffffn;

/** A limit of a process; pid 0 is this one. */
export function readResourceLimit(resource: ResourceName, pid = 0): ResourceLimit {
  const old = Buffer.alloc(16);
  syscall('prlimit64', [pid, RESOURCES[resource], null, old], resource);
  return { soft: limitOf(old.readBigUInt64LE(0)), hard: limitOf(old.readBigUInt64LE(8)) };
}

/** Sets a limit of a process; pid 0 is this one. Raising a hard limit needs CAP_SYS_RESOURCE. */
export function setResourceLimit(resource: ResourceName, limit: ResourceLimit, pid = 0): void {
  const next = Buffer.alloc(16);
  next.writeBigUInt64LE(bitsOf(limit.soft), 0);
  next.writeBigUInt64LE(bitsOf(limit.hard), 8);
  syscall('prlimit64', [pid, RESOURCES[resource], next, null], resource);
}

const limitOf = (bits: bigint) => (bits === NO_LIMIT ? Number.POSITIVE_INFINITY : Number(bits));
const bitsOf = (limit: number) => (Number.isFinite(limit) ? BigInt(limit) : NO_LIMIT);

/**
 * prctl(2) with plain integers. Options that change one thread (seccomp, name) reach only Node's main
 * thread.
 */
export function prctl(option: number, ...args: (number | bigint)[]): number {
  return syscall('prctl', [option, ...args], String(option));
}

/**
 * A descriptor that stands for one process whatever its pid is reused for; readable once it has ended. Only
 * a process that is not yet reaped can be opened, so check its start time after opening when the pid came
 * from a record.
 */
export function openPidfd(pid: number): number {
  return syscall('pidfd_open', [pid, 0], String(pid));
}

/** Signals exactly the process behind a pidfd. Returns false when it is already gone. Signal 0 only asks. */
export function signalPidfd(pidfd: number, signal: NodeJS.Signals | 0): boolean {
  const number = signal === 0 ? 0 : constants.signals[signal];
  const result = rawSyscall('pidfd_send_signal', pidfd, number, null, 0);
  if (result >= 0) return true;
  const error = syscallError('pidfd_send_signal', -result, String(signal));
  if (error.details.errnoName === 'ESRCH') return false;
  throw error;
}
