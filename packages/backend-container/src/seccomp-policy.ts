/**
 * What a sandbox may ask of the kernel where the answer depends on arguments. A rule looks at the low 32 bits
 * of an argument only, which is all that the kernel itself looks at for an `int`.
 */

export const ERRNO = {
  EPERM: 1,
  EINVAL: 22,
  ENOSYS: 38,
  ENOPROTOOPT: 92,
  EPROTONOSUPPORT: 93,
  EAFNOSUPPORT: 97,
};

export type Verdict = 'allow' | { readonly errno: number };

/** `(argument & mask) === value`; with `any`, `argument & any` is not 0. */
export type Condition =
  | { readonly argument: number; readonly value: number; readonly mask?: number }
  | { readonly argument: number; readonly any: number };

/** The first clause whose conditions all hold decides. */
export interface SyscallRule {
  readonly clauses: readonly {
    readonly when: readonly Condition[];
    readonly verdict: Verdict;
  }[];
  readonly otherwise: Verdict;
}

const refuse = (errno: keyof typeof ERRNO): Verdict => ({ errno: ERRNO[errno] });

/** CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}. */
const CLONE_NEW = 0x7e02_0000;
/** In clone(2) this bit belongs to the exit signal. */
const CLONE_NEWTIME = 0x80;
const CLONE_NEWUSER = 0x1000_0000;

const AF = { UNIX: 1, INET: 2, INET6: 10, NETLINK: 16 };
const SOCK = { STREAM: 1, DGRAM: 2, TYPE_MASK: 0xf };
const NETLINK = { ROUTE: 0, SOCK_DIAG: 4, AUDIT: 9, KOBJECT_UEVENT: 15 };

const inet = (family: number) =>
  [SOCK.STREAM, SOCK.DGRAM].map((type) => ({
    when: [
      { argument: 0, value: family },
      { argument: 1, value: type, mask: SOCK.TYPE_MASK },
    ],
    verdict: 'allow' as const,
  }));

/** Low 16 bits of requests: direction and size are left out, so that no variant slips through. */
const IOCTLS_REFUSED = {
  TIOCSTI: 0x5412,
  TIOCLINUX: 0x541c,
  TIOCCONS: 0x541d,
  TIOCSETD: 0x5423,
  FS_IOC_SETFLAGS: 0x6602,
  EXT4_IOC_MOVE_EXT: 0x660f,
  FS_IOC_FSSETXATTR: 0x5820,
  XFS_IOC_SWAPEXT: 0x586d,
  XFS_IOC_EXCHANGE_RANGE: 0x5881,
};

const PRCTLS_REFUSED = { SCHED_CORE: 62, SET_MEMORY_MERGE: 67 };

/** What personalities of plain Linux programs are: PER_LINUX, PER_LINUX32, both with UNAME26, a query. */
const PERSONALITIES = [0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/** Level and name: what hands a socket to another protocol, or shares its pages with the kernel. */
const SOCKET_OPTIONS_REFUSED = {
  SO_ZEROCOPY: [1, 60],
  TCP_ULP: [6, 31],
  UDP_ENCAP: [17, 100],
} as const;

/** One for each call whose verdict in the table is `rule`. */
export const SYSCALL_RULES: Readonly<Record<string, SyscallRule>> = {
  clone: {
    clauses: [{ when: [{ argument: 0, any: CLONE_NEW }], verdict: refuse('EPERM') }],
    otherwise: 'allow',
  },
  unshare: {
    clauses: [
      { when: [{ argument: 0, any: CLONE_NEW | CLONE_NEWTIME }], verdict: refuse('EPERM') },
    ],
    otherwise: 'allow',
  },
  // aether takes its children into the namespace of sessions; a session knows no other than its own.
  setns: {
    clauses: [{ when: [{ argument: 1, value: CLONE_NEWUSER }], verdict: 'allow' }],
    otherwise: refuse('EPERM'),
  },
  socket: {
    clauses: [
      { when: [{ argument: 0, value: AF.UNIX }], verdict: 'allow' },
      ...inet(AF.INET),
      ...inet(AF.INET6),
      ...[AF.INET, AF.INET6].map((family) => ({
        when: [{ argument: 0, value: family }],
        verdict: refuse('EPERM'),
      })),
      ...Object.values(NETLINK).map((protocol) => ({
        when: [
          { argument: 0, value: AF.NETLINK },
          { argument: 2, value: protocol },
        ],
        verdict: 'allow' as const,
      })),
      { when: [{ argument: 0, value: AF.NETLINK }], verdict: refuse('EPROTONOSUPPORT') },
    ],
    otherwise: refuse('EAFNOSUPPORT'),
  },
  socketpair: {
    clauses: [{ when: [{ argument: 0, value: AF.UNIX }], verdict: 'allow' }],
    otherwise: refuse('EAFNOSUPPORT'),
  },
  setsockopt: {
    clauses: Object.values(SOCKET_OPTIONS_REFUSED).map(([level, name]) => ({
      when: [
        { argument: 1, value: level },
        { argument: 2, value: name },
      ],
      verdict: refuse('ENOPROTOOPT'),
    })),
    otherwise: 'allow',
  },
  ioctl: {
    clauses: Object.values(IOCTLS_REFUSED).map((request) => ({
      when: [{ argument: 1, value: request, mask: 0xffff }],
      verdict: refuse('EPERM'),
    })),
    otherwise: 'allow',
  },
  prctl: {
    clauses: Object.values(PRCTLS_REFUSED).map((option) => ({
      when: [{ argument: 0, value: option }],
      verdict: refuse('EINVAL'),
    })),
    otherwise: 'allow',
  },
  personality: {
    clauses: PERSONALITIES.map((persona) => ({
      when: [{ argument: 0, value: persona }],
      verdict: 'allow' as const,
    })),
    otherwise: refuse('EPERM'),
  },
};
