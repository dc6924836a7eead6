import { DsecError } from '@dsec/std';
import koffi from 'koffi';
import { syscallError } from './errno.ts';
import { type SyscallName, syscallNumber } from './syscall-numbers.ts';

/** What a system call takes: an integer (negative ones are sign-extended) or the address of a buffer. */
export type SyscallArgument = number | bigint | Uint8Array | null;

/**
 * syscall(2) of the C library that this process already runs on, so no library name is needed and glibc and
 * musl both work. Every argument is declared as a pointer: koffi passes integers through unchanged and
 * buffers by address.
 */
const libcSyscall = koffi
  .load(null)
  .func('int64_t syscall(int64_t, void*, void*, void*, void*, void*, void*)') as (
  number: number,
  ...six: SyscallArgument[]
) => number | bigint;

/**
 * Makes a system call on the calling thread and blocks the event loop until it returns. Gives the kernel's
 * answer as it came: the result, or the negative errno. Calls that change the thread (setns, unshare,
 * clone) must not be made through here: Node runs file operations on a pool of other threads, which would
 * keep the old namespaces.
 */
export function rawSyscall(name: SyscallName, ...args: SyscallArgument[]): number {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = args;
  const result = libcSyscall(syscallNumber(name), a, b, c, d, e, f);
  if (typeof result === 'bigint') {
    throw new DsecError('too-large', `${name} returned ${result}, more than 2^53`);
  }
  return result === -1 ? -koffi.errno() : result;
}

/** As `rawSyscall`, but throws the typed error of a failure; `subject` names what the call was about. */
export function syscall(name: SyscallName, args: SyscallArgument[], subject = ''): number {
  const result = rawSyscall(name, ...args);
  if (result < 0) throw syscallError(name, -result, subject);
  return result;
}

/**
 * The address of a buffer, for structures that hold pointers. Keep the buffer referenced until the call is
 * over.
 */
export function addressOf(buffer: Uint8Array): bigint {
  return koffi.address(buffer);
}

/** A buffer over memory that is shared with the kernel, and where that memory lies. */
export type MappedBuffer = Buffer & { readonly address: bigint };

/**
 * Maps `length` bytes, read and write, shared, of a descriptor (or fresh memory for -1) until this process
 * ends.
 */
export function mapShared(fd: number, length: number): MappedBuffer {
  const PROT_READ_WRITE = 3;
  const [MAP_SHARED, MAP_ANONYMOUS] = [0x01, 0x20];
  const flags = fd === -1 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
  const address = BigInt(syscall('mmap', [null, length, PROT_READ_WRITE, flags, fd, 0]));
  return Object.assign(Buffer.from(koffi.view(address, length)), { address });
}
