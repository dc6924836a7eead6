import { check, checkOutcome } from './check.ts';
import type { BpfKind, HostFacts } from './facts.ts';
import { BPF_KINDS } from './facts.ts';
import { parseWords } from './parse.ts';
import type { HostCheck } from './report.ts';

/** What the policies of a sandbox can be enforced with. Pure. */
export function securityChecks(facts: HostFacts): HostCheck[] {
  return [
    seccomp(facts),
    landlock(facts),
    appArmor(facts),
    ...BPF_KINDS.map((kind) => bpf(facts, kind)),
  ];
}

function seccomp(facts: HostFacts): HostCheck {
  const head = {
    id: 'security.seccomp',
    group: 'security',
    neededFor: 'the list of allowed system calls',
  } as const;
  const actions = parseWords(facts.files['/proc/sys/kernel/seccomp/actions_avail'] ?? '');
  const lacking = ['errno', 'kill_process'].filter((action) => !actions.includes(action));
  const remedy = 'a kernel with CONFIG_SECCOMP_FILTER=y';
  if (actions.length === 0) return check(head, 'missing', 'no seccomp filters', remedy);
  if (lacking.length > 0) return check(head, 'missing', `no action ${lacking.join(', ')}`, remedy);
  return check(head, 'ok', `filters with ${actions.length} actions`, '');
}

/** The first version of Landlock that also keeps signals and abstract sockets apart. */
const LANDLOCK_ABI_FULL = 6;

function landlock(facts: HostFacts): HostCheck {
  const head = {
    id: 'security.landlock',
    group: 'security',
    neededFor: 'file and TCP rules for whole trees',
  } as const;
  const remedy =
    'a kernel with CONFIG_SECURITY_LANDLOCK=y, and landlock in the lsm= boot parameter';
  const { abi } = facts.landlock;
  if (abi === undefined || abi >= LANDLOCK_ABI_FULL) {
    return checkOutcome(head, facts.landlock, remedy);
  }
  const found = `interface version ${abi}, without scopes`;
  return check(head, 'degraded', found, 'a kernel of version 6.12 or newer');
}

function appArmor(facts: HostFacts): HostCheck {
  const head = {
    id: 'security.apparmor',
    group: 'security',
    neededFor: 'file rules by path, against root inside too',
  } as const;
  const enabled = facts.files['/sys/module/apparmor/parameters/enabled']?.trim();
  if (enabled !== 'Y') {
    const found = enabled === undefined ? 'not in this kernel' : 'in the kernel, switched off';
    const option = enabled === undefined ? 'a kernel with CONFIG_SECURITY_APPARMOR=y, and ' : '';
    return check(head, 'missing', found, `${option}boot with apparmor=1 security=apparmor`);
  }
  if (facts.tools.apparmor_parser === undefined) {
    return check(head, 'degraded', 'on, but no apparmor_parser', '`apt-get install apparmor`');
  }
  const restricted =
    facts.files['/proc/sys/kernel/apparmor_restrict_unprivileged_userns']?.trim() === '1';
  const note = restricted ? '; user namespaces of ordinary users are restricted' : '';
  return check(head, 'ok', `on${note}`, '');
}

interface BpfRow {
  readonly neededFor: string;
  readonly remedy: string;
}

const CGROUP_BPF = 'a kernel with CONFIG_BPF_SYSCALL=y and CONFIG_CGROUP_BPF=y';

const BPF_ROWS: Readonly<Record<BpfKind, BpfRow>> = {
  cgroup_skb: { neededFor: 'counting and dropping packets of a sandbox', remedy: CGROUP_BPF },
  cgroup_sock_addr: { neededFor: 'the network allowlist at connect', remedy: CGROUP_BPF },
  sched_cls: {
    neededFor: 'packet rules on the interface of a VM',
    remedy: 'a kernel with CONFIG_BPF_SYSCALL=y and CONFIG_NET_CLS_ACT=y',
  },
  cgroup_device: { neededFor: 'the allowlist of devices', remedy: CGROUP_BPF },
  lsm: {
    neededFor: 'denying ioctl commands and the like by policy',
    remedy: 'a kernel with CONFIG_BPF_LSM=y and CONFIG_DEBUG_INFO_BTF=y, and bpf in lsm= at boot',
  },
};

function bpf(facts: HostFacts, kind: BpfKind): HostCheck {
  const { neededFor, remedy } = BPF_ROWS[kind];
  const head = { id: `bpf.${kind.replaceAll('_', '-')}`, group: 'bpf', neededFor } as const;
  const outcome = facts.bpf[kind];
  if (kind !== 'lsm' || outcome.state !== 'fails' || facts.securityModules === undefined) {
    return checkOutcome(head, outcome, remedy);
  }
  // Some vendor kernels have all of it and still refuse to patch their code for a hook.
  const active = facts.securityModules.includes('bpf') ? 'active' : 'not active';
  return check(head, 'missing', `${outcome.why}, with the bpf security module ${active}`, remedy);
}
