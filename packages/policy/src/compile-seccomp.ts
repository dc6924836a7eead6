import type { Compiled, Enforcement, Gap, PolicyFacts } from './compiled.ts';
import { DENIAL_ERRORS, FAMILY_NAMES, SOCKET_FAMILIES, SOCKET_TYPES } from './platform.ts';
import type { ArgumentCondition, Policy, SocketAllowance, SyscallDenial } from './policy.ts';

/** Put before the platform's own filter: nothing here ever allows. */
export interface SeccompDenial {
  readonly call: string;
  /** `(low 32 bits of the argument & mask) === equals`; all must hold. */
  readonly when: readonly ArgumentCondition[];
  /** As the kernel numbers it. */
  readonly errno: number;
}

const EAFNOSUPPORT = 97;
const ESOCKTNOSUPPORT = 94;
const ALL_BITS = 0xffff_ffff;
/** Flags are in the bits above. */
const TYPE_MASK = 0xf;

/** Denials for the filter of system calls: those of the policy, and sockets that it does not have. */
export function compileSeccomp(
  policy: Policy,
  facts: PolicyFacts,
): Compiled<readonly SeccompDenial[]> {
  const enforced: Enforcement[] = [];
  const notEnforced: Gap[] = [];
  const denials: SeccompDenial[] = [];
  for (const denial of policy.syscalls) {
    const { call, when, error } = denial;
    const rule = { section: 'syscalls', source: denial.source, text: syscallText(denial) } as const;
    if (facts.systemCalls?.has(call) === false) {
      notEnforced.push({ rule, by: 'seccomp', why: `there is no system call ${call}` });
      continue;
    }
    enforced.push({ rule, by: 'seccomp' });
    denials.push({ call, when, errno: DENIAL_ERRORS[error] });
  }
  const families = policy.sockets.items.map(({ family }) => family).join(' ');
  const rule = {
    section: 'sockets',
    source: policy.sockets.source,
    text: `sockets: ${families === '' ? 'none' : families}`,
  } as const;
  enforced.push({ rule, by: 'seccomp' });
  return {
    output: [...socketDenials(policy.sockets.items), ...denials],
    enforced,
    notEnforced,
  };
}

export function syscallText({ call, when }: SyscallDenial): string {
  const conditions = when.map(({ argument, equals, mask }) => {
    const masked = mask === ALL_BITS ? '' : ` & 0x${mask.toString(16)}`;
    return `argument ${argument}${masked} is 0x${equals.toString(16)}`;
  });
  return `deny ${call}${conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`}`;
}

function socketDenials(allowed: readonly SocketAllowance[]): SeccompDenial[] {
  return FAMILY_NAMES.flatMap((family) => {
    const { number, types } = SOCKET_FAMILIES[family];
    const found = allowed.find((one) => one.family === family);
    const isFamily = { argument: 0, equals: number, mask: ALL_BITS };
    if (found === undefined) return denySockets([isFamily], EAFNOSUPPORT);
    if (types.every((type) => found.types.includes(type))) return [];
    return typesWithout(found).flatMap((equals) =>
      denySockets([isFamily, { argument: 1, equals, mask: TYPE_MASK }], ESOCKTNOSUPPORT),
    );
  });
}

const denySockets = (when: readonly ArgumentCondition[], errno: number): SeccompDenial[] =>
  ['socket', 'socketpair'].map((call) => ({ call, when, errno }));

/** Every value of the type's bits that is none of those allowed. */
function typesWithout({ family, types }: SocketAllowance): number[] {
  const allowed = new Set<number>(types.map((type) => SOCKET_TYPES[type]));
  // To the kernel, a raw unix socket is one of datagrams.
  if (family === 'unix' && allowed.has(SOCKET_TYPES.dgram)) allowed.add(SOCKET_TYPES.raw);
  return Array.from({ length: TYPE_MASK + 1 }, (_, value) => value).filter(
    (value) => !allowed.has(value),
  );
}
