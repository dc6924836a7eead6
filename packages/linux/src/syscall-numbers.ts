import { DsecError } from '@dsec/std';

/**
 * Numbers of the system calls that DSec makes from Node, as [x86_64, aarch64]. From 424 on both
 * architectures share one table. Source: the kernel's `syscall_64.tbl` and
 * `include/uapi/asm-generic/unistd.h`.
 */
const NUMBERS = {
  lseek: [8, 62],
  mmap: [9, 222],
  munmap: [11, 215],
  ioctl: [16, 29],
  socket: [41, 198],
  bind: [49, 200],
  listen: [50, 201],
  setsockopt: [54, 208],
  fcntl: [72, 25],
  flock: [73, 32],
  prctl: [157, 167],
  mount: [165, 40],
  umount2: [166, 39],
  lsetxattr: [189, 6],
  setxattr: [188, 5],
  getxattr: [191, 8],
  lgetxattr: [192, 9],
  listxattr: [194, 11],
  llistxattr: [195, 12],
  removexattr: [197, 14],
  lremovexattr: [198, 15],
  getdents64: [217, 61],
  mknodat: [259, 33],
  fchownat: [260, 54],
  linkat: [265, 37],
  readlinkat: [267, 78],
  utimensat: [280, 88],
  fallocate: [285, 47],
  prlimit64: [302, 261],
  syncfs: [306, 267],
  setns: [308, 268],
  renameat2: [316, 276],
  memfd_create: [319, 279],
  bpf: [321, 280],
  copy_file_range: [326, 285],
  pidfd_send_signal: [424, 424],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  pidfd_open: [434, 434],
  openat2: [437, 437],
  mount_setattr: [442, 442],
  landlock_create_ruleset: [444, 444],
  lsm_list_modules: [461, 461],
  open_tree_attr: [467, 467],
} as const;

export type SyscallName = keyof typeof NUMBERS;

/**
 * The number of a call on an architecture as Node names it. Throws `unsupported` on any but x64 and arm64.
 */
export function syscallNumber(name: SyscallName, arch: string = process.arch): number {
  if (arch === 'x64') return NUMBERS[name][0];
  if (arch === 'arm64') return NUMBERS[name][1];
  throw new DsecError('unsupported', `DSec runs on x86_64 and aarch64, not on ${arch}`);
}
