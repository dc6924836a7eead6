import { type Clock, DsecError, systemClock } from '@dsec/std';
import { syscallError } from './errno.ts';
import { rawSyscall, syscall } from './syscall.ts';

/**
 * Advisory locks by flock(2). A lock belongs to the open file, ends when its last descriptor is closed or
 * its process dies, and does not exclude the same open file. Over NFS the kernel turns it into a byte-range
 * lock, which needs the file open for writing for an exclusive one.
 */
export type LockMode = 'shared' | 'exclusive';

const LOCK_SH = 1;
const LOCK_EX = 2;
const LOCK_NB = 4;
const LOCK_UN = 8;

const FIRST_WAIT_MS = 2;
const WAIT_MS_MAX = 100;

/** Takes the lock if it is free now. Never waits on a local file system. */
export function tryLockFile(fd: number, mode: LockMode): boolean {
  const operation = (mode === 'shared' ? LOCK_SH : LOCK_EX) | LOCK_NB;
  const result = rawSyscall('flock', fd, operation);
  if (result >= 0) return true;
  const error = syscallError('flock', -result);
  if (error.details.errnoName === 'EAGAIN') return false;
  throw error;
}

export interface LockOptions {
  /** Gives up with `deadline-exceeded` after this long. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/**
 * Takes the lock, asking again with growing pauses (2 to 100 ms). The event loop stays free; order is not
 * kept.
 */
export async function lockFile(fd: number, mode: LockMode, options: LockOptions): Promise<void> {
  const { timeoutMs, signal, clock = systemClock } = options;
  const deadline = clock.monotonicMs() + timeoutMs;
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, WAIT_MS_MAX)) {
    signal?.throwIfAborted();
    if (tryLockFile(fd, mode)) return;
    const leftMs = deadline - clock.monotonicMs();
    if (leftMs <= 0) {
      throw new DsecError('deadline-exceeded', `another process held the lock for ${timeoutMs} ms`);
    }
    await clock.sleep(Math.min(waitMs, leftMs), signal);
  }
}

/** Gives the lock up. */
export function unlockFile(fd: number): void {
  syscall('flock', [fd, LOCK_UN]);
}
