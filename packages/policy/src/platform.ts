import type { Capability, DenialError, Device, SocketFamily, SocketType } from '@dsec/protocol';

/**
 * What the platform gives to sandboxes at most. A policy takes away from it and can add nothing.
 */

/** Capabilities of root inside, in the user namespace of sessions, by their numbers. */
export const CAPABILITY_BITS = {
  chown: 0,
  dac_override: 1,
  fowner: 3,
  fsetid: 4,
  kill: 5,
  setgid: 6,
  setuid: 7,
  setpcap: 8,
  net_bind_service: 10,
  setfcap: 31,
} as const satisfies Record<Capability, number>;

/** Families of sockets and their types: numbers of the kernel. */
export const SOCKET_FAMILIES = {
  unix: { number: 1, types: ['stream', 'dgram', 'seqpacket'] },
  inet: { number: 2, types: ['stream', 'dgram'] },
  inet6: { number: 10, types: ['stream', 'dgram'] },
  netlink: { number: 16, types: ['raw', 'dgram'] },
} as const satisfies Record<SocketFamily, unknown>;

export const SOCKET_TYPES = {
  stream: 1,
  dgram: 2,
  raw: 3,
  seqpacket: 5,
} as const satisfies Record<SocketType, number>;

/** In the `/dev` of a sandbox. A minor number of -1 stands for every one. */
export const DEVICES = {
  null: { path: '/dev/null', major: 1, minor: 3 },
  zero: { path: '/dev/zero', major: 1, minor: 5 },
  full: { path: '/dev/full', major: 1, minor: 7 },
  random: { path: '/dev/random', major: 1, minor: 8 },
  urandom: { path: '/dev/urandom', major: 1, minor: 9 },
  tty: { path: '/dev/tty', major: 5, minor: 0 },
  ptmx: { path: '/dev/ptmx', major: 5, minor: 2 },
  pts: { path: '/dev/pts', major: 136, minor: -1 },
} as const satisfies Record<Device, unknown>;

/** What the platform mounts in every sandbox: nothing may cover a tree that holds one of them. */
export const PLATFORM_MOUNTS = [
  ...['/proc', '/dev', '/dev/pts', '/dev/shm', '/dev/mqueue', '/sys'],
] as const;

/** Where the tools of the platform are mounted, read-only, in sandboxes that have them. */
export const TOOL_MOUNT = '/.dsec';

/** What these mounts deny by themselves. */
export const PLATFORM_DENIES = {
  '/dev': ['exec'],
  '/proc': ['exec'],
  '/sys': ['write', 'exec'],
} as const;

/** Without these no command starts, or none ends. */
export const SYSCALLS_NEEDED: ReadonlySet<string> = new Set([
  ...['read', 'write', 'close', 'execve', 'exit', 'exit_group', 'mmap', 'brk', 'rt_sigreturn'],
]);

/** Errors that a denied call may tell, by the kernel's numbers. */
export const DENIAL_ERRORS = {
  EPERM: 1,
  EACCES: 13,
  EINVAL: 22,
  ENOSYS: 38,
} as const satisfies Record<DenialError, number>;

export {
  CAPABILITIES,
  type Capability,
  DENIAL_ERROR_NAMES,
  DEVICE_NAMES,
  type DenialError,
  type Device,
  FAMILY_NAMES,
  type SocketFamily,
  type SocketType,
  TYPE_NAMES,
} from '@dsec/protocol';
