import { cString, descriptorPath, type FileTarget, shownPath } from './byte-path.ts';
import { syscallError } from './errno.ts';
import { rawSyscall, type SyscallArgument, syscall } from './syscall.ts';
import type { SyscallName } from './syscall-numbers.ts';

/**
 * Extended attributes, bytes in and bytes out. Names are byte strings in latin1 form (each character is one
 * byte), so that a name that is not UTF-8 survives. Paths are not followed through a final link. A
 * descriptor is reached through /proc/self/fd, so that O_PATH ones, of links and devices too, work. Calls
 * block.
 */

/** The kernel's own limits (XATTR_LIST_MAX, XATTR_SIZE_MAX): one answer always fits. */
const ANSWER_BYTES_MAX = 65_536;
/**
 * One scratch buffer serves every call, since none gives the event loop away before it has copied its
 * answer.
 */
const answer = Buffer.alloc(ANSWER_BYTES_MAX);

const XATTR_CREATE = 1;
const XATTR_REPLACE = 2;

/** The names that this process may see (`trusted.` ones only with CAP_SYS_ADMIN), in the kernel's order. */
export function listXattrs(target: FileTarget): string[] {
  const length = callOn(target, ['llistxattr', 'listxattr'], answer, answer.length);
  if (length === 0) return [];
  return answer.toString('latin1', 0, length - 1).split('\0');
}

/** The value of one attribute, or `undefined` where there is none. */
export function getXattr(target: FileTarget, name: string): Buffer | undefined {
  const at = attributeAddress(target, ['lgetxattr', 'getxattr'], name);
  const result = rawSyscall(at.call, at.path, at.name, answer, answer.length);
  if (result >= 0) return Buffer.from(answer.subarray(0, result));
  const error = syscallError(at.call, -result, at.shown);
  if (error.details.errnoName === 'ENODATA') return undefined;
  throw error;
}

/** Sets one attribute. `create` fails with `already-exists`, `replace` with `not-found`. */
export function setXattr(
  target: FileTarget,
  name: string,
  value: Uint8Array,
  mode: 'any' | 'create' | 'replace' = 'any',
): void {
  const at = attributeAddress(target, ['lsetxattr', 'setxattr'], name);
  const flags = { any: 0, create: XATTR_CREATE, replace: XATTR_REPLACE }[mode];
  syscall(at.call, [at.path, at.name, value, value.length, flags], at.shown);
}

/** Removes one attribute; `not-found` where there is none. */
export function removeXattr(target: FileTarget, name: string): void {
  const at = attributeAddress(target, ['lremovexattr', 'removexattr'], name);
  syscall(at.call, [at.path, at.name], at.shown);
}

type CallPair = readonly [ofPath: SyscallName, ofDescriptor: SyscallName];

function callOn(target: FileTarget, calls: CallPair, ...rest: SyscallArgument[]): number {
  const at = address(target, calls);
  return syscall(at.call, [at.path, ...rest], at.shown);
}

function attributeAddress(target: FileTarget, calls: CallPair, name: string) {
  const at = address(target, calls);
  const nameBytes = cString(Buffer.from(name, 'latin1'));
  return { ...at, name: nameBytes, shown: `${JSON.stringify(name)} of ${at.shown}` };
}

function address(target: FileTarget, calls: CallPair) {
  const byDescriptor = typeof target === 'number';
  const path = byDescriptor ? descriptorPath(target) : target;
  return { call: calls[byDescriptor ? 1 : 0], path: cString(path), shown: shownPath(path) };
}
