import { closeSync, readSync } from 'node:fs';
import { assertNever, DsecError } from '@dsec/std';
import { AT_FDCWD, type BytePath, cString, shownPath } from './byte-path.ts';
import { syscallError } from './errno.ts';
import { rawSyscall, type SyscallArgument, syscall } from './syscall.ts';

/**
 * The kernel's mount calls, one function each. They block, and act on the mount namespace of this process:
 * the caller sees to it that this is a private one. A mount made by `fsmount` or cloned by `openTree` is
 * detached, in no namespace's table at all, until `moveMount` attaches it. Source: fsopen(2) to
 * mount_setattr(2), kernel 6.18.
 */

/** Attributes of a mount (`MOUNT_ATTR_*`). */
export const MOUNT_ATTRIBUTES = {
  readOnly: 0x01,
  noSuid: 0x02,
  noDev: 0x04,
  noExec: 0x08,
  noAtime: 0x10,
  idmap: 0x10_0000,
  noSymlinkFollow: 0x20_0000,
} as const;

export type MountAttribute = Exclude<keyof typeof MOUNT_ATTRIBUTES, 'idmap'>;

/** fsconfig(2) takes strings of at most this many bytes; longer paths are named by descriptor. */
export const FSCONFIG_STRING_BYTES_MAX = 255;

const O_CLOEXEC = 0o2_000_000;
const FSOPEN_CLOEXEC = 1;
const FSMOUNT_CLOEXEC = 1;
const FSCONFIG_SET_FLAG = 0;
const FSCONFIG_SET_STRING = 1;
const FSCONFIG_SET_FD = 5;
const FSCONFIG_CMD_CREATE = 6;
const MOVE_MOUNT_F_EMPTY_PATH = 0x04;
const MOVE_MOUNT_T_EMPTY_PATH = 0x40;
const OPEN_TREE_CLONE = 1;
const AT_EMPTY_PATH = 0x1000;
const AT_RECURSIVE = 0x8000;
const AT_SYMLINK_NOFOLLOW = 0x100;
const MNT_DETACH = 2;
const UMOUNT_NOFOLLOW = 8;
/** The kernel keeps at most this many messages for one file system context. */
const LOG_MESSAGES_MAX = 8;
const LOG_MESSAGE_BYTES_MAX = 4096;

/** One setting of a file system context. */
export type FsParameter =
  | { readonly kind: 'flag'; readonly key: string }
  | { readonly kind: 'string'; readonly key: string; readonly value: BytePath }
  | { readonly kind: 'fd'; readonly key: string; readonly fd: number };

/**
 * Opens a context for a file system type. Returns its descriptor. `unsupported`: the kernel does not know
 * the type.
 */
export function fsopen(type: string): number {
  return syscall('fsopen', [cString(type), FSOPEN_CLOEXEC], type);
}

/** Sets one parameter. An error carries what the kernel logged for this context in `details.kernelLog`. */
export function fsconfigSet(contextFd: number, parameter: FsParameter): void {
  const name = cString(parameter.key);
  switch (parameter.kind) {
    case 'flag':
      fsconfig(contextFd, [FSCONFIG_SET_FLAG, name, null, 0], parameter.key);
      break;
    case 'fd':
      fsconfig(contextFd, [FSCONFIG_SET_FD, name, null, parameter.fd], `${parameter.key}=<fd>`);
      break;
    case 'string': {
      const shown = `${parameter.key}=${shownPath(parameter.value)}`;
      const value = cString(parameter.value);
      checkStringLength(value.length - 1, shown);
      fsconfig(contextFd, [FSCONFIG_SET_STRING, name, value, 0], shown);
      break;
    }
    default:
      assertNever(parameter);
  }
}

function checkStringLength(bytes: number, shown: string): void {
  if (bytes <= FSCONFIG_STRING_BYTES_MAX) return;
  throw new DsecError(
    'invalid-argument',
    `mount option ${shown} is ${bytes} bytes; the kernel takes ${FSCONFIG_STRING_BYTES_MAX}`,
  );
}

/** Creates the file system that the context describes. May wait for I/O on its devices. */
export function fsconfigCreate(contextFd: number): void {
  fsconfig(contextFd, [FSCONFIG_CMD_CREATE, null, null, 0], 'create');
}

function fsconfig(contextFd: number, args: SyscallArgument[], subject: string): void {
  const result = rawSyscall('fsconfig', contextFd, ...args);
  if (result >= 0) return;
  const kernelLog = readContextLog(contextFd);
  const about = kernelLog === '' ? subject : `${subject} (kernel: ${kernelLog})`;
  throw syscallError('fsconfig', -result, about, kernelLog === '' ? {} : { kernelLog });
}

/** The messages that the kernel holds for a context, oldest first, joined by `; `. Reading takes them out. */
function readContextLog(contextFd: number): string {
  const messages: string[] = [];
  const buffer = Buffer.alloc(LOG_MESSAGE_BYTES_MAX);
  while (messages.length < LOG_MESSAGES_MAX) {
    try {
      const length = readSync(contextFd, buffer);
      if (length === 0) break;
      messages.push(buffer.toString('utf8', 0, length).trim());
    } catch {
      break; // ENODATA ends the log; a context without one is not worth a second error.
    }
  }
  return messages.join('; ');
}

/** Makes a detached mount of a created context. Returns its descriptor. */
export function fsmount(contextFd: number, attributes: readonly MountAttribute[] = []): number {
  return syscall('fsmount', [contextFd, FSMOUNT_CLOEXEC, attributeBits(attributes)]);
}

/** Runs one context from fsopen to fsmount and closes it. Returns the descriptor of the detached mount. */
export function mountDetached(
  type: string,
  parameters: readonly FsParameter[],
  attributes: readonly MountAttribute[],
): number {
  const contextFd = fsopen(type);
  try {
    for (const parameter of parameters) fsconfigSet(contextFd, parameter);
    fsconfigCreate(contextFd);
    return fsmount(contextFd, attributes);
  } finally {
    closeSync(contextFd);
  }
}

/** Attaches a detached mount (or moves an attached one) to a path, or onto a directory's descriptor. */
export function moveMount(mountFd: number, target: BytePath | { readonly fd: number }): void {
  const empty = cString('');
  if (typeof target === 'object' && 'fd' in target) {
    const flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    syscall('move_mount', [mountFd, empty, target.fd, empty, flags], '<fd>');
    return;
  }
  const args = [mountFd, empty, AT_FDCWD, cString(target), MOVE_MOUNT_F_EMPTY_PATH];
  syscall('move_mount', args, shownPath(target));
}

export interface OpenTreeOptions {
  /** Opens a detached copy of the mount instead of the mount itself. */
  readonly clone?: boolean;
  /** With `clone`: also copies the mounts below it. */
  readonly recursive?: boolean;
}

/** A descriptor of the mount tree at a path (not following a final link) or descriptor. */
export function openTree(
  tree: BytePath | { readonly fd: number },
  o: OpenTreeOptions = {},
): number {
  const at = atOf(tree);
  return syscall('open_tree', [at.dirFd, at.path, at.flags | treeFlags(o)], at.shown);
}

/** How `mountSetattr` and `openTreeAttr` change a mount. */
export interface MountChange {
  readonly set?: readonly MountAttribute[];
  readonly clear?: readonly MountAttribute[];
  /** Maps ids through this user namespace (a descriptor of /proc/PID/ns/user). Only on a detached mount. */
  readonly idmapUserNamespaceFd?: number;
  readonly propagation?: 'private' | 'slave' | 'shared' | 'unbindable';
}

/** Changes a mount in place, with `recursive` also those below it. */
export function mountSetattr(
  tree: BytePath | { readonly fd: number },
  change: MountChange,
  options: { readonly recursive?: boolean } = {},
): void {
  const at = atOf(tree);
  const flags = at.flags | (options.recursive ? AT_RECURSIVE : 0);
  const attr = mountAttr(change);
  syscall('mount_setattr', [at.dirFd, at.path, flags, attr, attr.length], at.shown);
}

/**
 * A detached clone of a mount with changed attributes, in one call on kernels from 6.15 and in two before.
 * Only from 6.15 on may the mount that is cloned be detached itself (`invalid-argument` before), or have an
 * idmap already.
 */
export function openTreeAttr(
  tree: BytePath | { readonly fd: number },
  change: MountChange,
  options: { readonly recursive?: boolean } = {},
): number {
  const at = atOf(tree);
  const attr = mountAttr(change);
  const flags = at.flags | treeFlags({ clone: true, ...options });
  const result = rawSyscall('open_tree_attr', at.dirFd, at.path, flags, attr, attr.length);
  if (result >= 0) return result;
  const error = syscallError('open_tree_attr', -result, at.shown);
  if (error.code !== 'unsupported') throw error;
  const fd = openTree(tree, { clone: true, ...options });
  try {
    mountSetattr({ fd }, change, options);
    return fd;
  } catch (thrown) {
    closeSync(fd);
    throw thrown;
  }
}

/**
 * Unmounts what is at a path, not following a final link. `detach`: out of the table now, gone when unused.
 */
export function umount(path: BytePath, options: { readonly detach?: boolean } = {}): void {
  const flags = UMOUNT_NOFOLLOW | (options.detach ? MNT_DETACH : 0);
  syscall('umount2', [cString(path), flags], shownPath(path));
}

/** Flags of the classic mount(2) that DSec uses. */
export const MOUNT_FLAGS = {
  readOnly: 1,
  noSuid: 2,
  noDev: 4,
  noExec: 8,
  remount: 32,
  bind: 4096,
  recursive: 16384,
  private: 1 << 18,
  slave: 1 << 19,
} as const;

/**
 * Classic mount(2), for file systems and changes that need no more. `data` is cut by the kernel at 4,095
 * bytes.
 */
export function mountClassic(spec: {
  readonly source?: BytePath;
  readonly target: BytePath;
  readonly type?: string;
  readonly flags?: readonly (keyof typeof MOUNT_FLAGS)[];
  readonly data?: BytePath;
}): void {
  const data = spec.data === undefined ? null : cString(spec.data);
  if (data !== null && data.length > 4096) {
    throw new DsecError('invalid-argument', 'mount(2) takes at most 4095 bytes of options');
  }
  const bits = (spec.flags ?? []).reduce((sum, flag) => sum | MOUNT_FLAGS[flag], 0);
  const source = cString(spec.source ?? 'none');
  const type = spec.type === undefined ? null : cString(spec.type);
  syscall('mount', [source, cString(spec.target), type, bits, data], shownPath(spec.target));
}

function atOf(tree: BytePath | { readonly fd: number }) {
  if (typeof tree === 'object' && 'fd' in tree) {
    return { dirFd: tree.fd, path: cString(''), flags: AT_EMPTY_PATH, shown: '<fd>' };
  }
  return {
    dirFd: AT_FDCWD,
    path: cString(tree),
    flags: AT_SYMLINK_NOFOLLOW,
    shown: shownPath(tree),
  };
}

function treeFlags(options: OpenTreeOptions): number {
  const clone = options.clone ? OPEN_TREE_CLONE : 0;
  return O_CLOEXEC | clone | (options.recursive ? AT_RECURSIVE : 0);
}

function attributeBits(attributes: readonly MountAttribute[]): number {
  return attributes.reduce((sum, attribute) => sum | MOUNT_ATTRIBUTES[attribute], 0);
}

const PROPAGATION = {
  private: 1 << 18,
  slave: 1 << 19,
  shared: 1 << 20,
  unbindable: 1 << 17,
} as const;

/** `struct mount_attr`: set, clear, propagation and user namespace descriptor, 64 bits each. */
function mountAttr(change: MountChange): Buffer {
  const idmap = change.idmapUserNamespaceFd;
  const set = attributeBits(change.set ?? []) | (idmap === undefined ? 0 : MOUNT_ATTRIBUTES.idmap);
  const attr = Buffer.alloc(32);
  attr.writeBigUInt64LE(BigInt(set), 0);
  attr.writeBigUInt64LE(BigInt(attributeBits(change.clear ?? [])), 8);
  attr.writeBigUInt64LE(change.propagation ? BigInt(PROPAGATION[change.propagation]) : 0n, 16);
  attr.writeBigUInt64LE(BigInt(idmap ?? 0), 24);
  return attr;
}
