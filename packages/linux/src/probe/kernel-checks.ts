import { isAtLeast, overlayFormOf, parseKernelVersion } from '../kernel-version.ts';
import { check, checkOutcome, type Distribution, distributionOf, RUN_AS_ROOT } from './check.ts';
import { type HostFacts, NAMESPACE_KINDS, type NamespaceKind } from './facts.ts';
import { type CapabilityName, parseCapabilities } from './parse.ts';
import type { HostCheck } from './report.ts';

/** Kernel version, rights of this process, namespaces. Pure. */
export function kernelChecks(facts: HostFacts): HostCheck[] {
  return [
    kernelVersion(facts),
    architecture(facts),
    ...privileges(facts),
    ...NAMESPACE_KINDS.map((kind) => namespace(facts, kind)),
  ];
}

function kernelVersion(facts: HostFacts): HostCheck {
  const head = {
    id: 'kernel.version',
    group: 'kernel',
    neededFor: 'layers mounted from files (6.12); layers that are in no mount table (6.15)',
  } as const;
  const version = parseKernelVersion(facts.kernelRelease);
  const remedy = NEWER_KERNEL[distributionOf(facts)];
  if (version === undefined) return check(head, 'unknown', facts.kernelRelease, remedy);
  if (overlayFormOf(facts.kernelRelease) === 'descriptor') {
    return check(head, 'ok', `${facts.kernelRelease}, the fast path`, '');
  }
  if (isAtLeast(version, 6, 12)) {
    const found = `${facts.kernelRelease}: works, with layers attached by path`;
    return check(head, 'degraded', found, remedy);
  }
  return check(head, 'missing', `${facts.kernelRelease} is older than 6.12`, remedy);
}

const NEWER_KERNEL: Readonly<Record<Distribution, string>> = {
  'debian-12': '`apt-get install -t bookworm-backports linux-image-amd64`, then reboot',
  'debian-13': '`apt-get install -t trixie-backports linux-image-amd64`, then reboot',
  ubuntu: '`apt-get install linux-generic-hwe-24.04`, then reboot',
  other: 'boot a kernel of version 6.15 or newer',
};

function architecture(facts: HostFacts): HostCheck {
  const head = {
    id: 'kernel.architecture',
    group: 'kernel',
    neededFor: 'system call numbers and the programs that DSec builds',
  } as const;
  const known = facts.arch === 'x64' || facts.arch === 'arm64';
  return check(head, known ? 'ok' : 'missing', facts.arch, 'use an x86_64 or aarch64 host');
}

/** What the launcher needs in its effective set, beside SYS_RESOURCE. */
const NEEDED_CAPABILITIES: readonly CapabilityName[] = [
  'SYS_ADMIN',
  'NET_ADMIN',
  'SYS_CHROOT',
  'SYS_PTRACE',
  'MKNOD',
  'CHOWN',
  'DAC_OVERRIDE',
  'DAC_READ_SEARCH',
  'FOWNER',
  'FSETID',
  'KILL',
  'SETGID',
  'SETUID',
  'SETPCAP',
  'SETFCAP',
  'BPF',
  'PERFMON',
];

function privileges(facts: HostFacts): HostCheck[] {
  const root = {
    id: 'privilege.root',
    group: 'privilege',
    neededFor: 'mounts, namespaces and cgroups of sandboxes; the trials of this report',
  } as const;
  const resource = {
    id: 'privilege.resource',
    group: 'privilege',
    neededFor: 'raising limits of open files and processes for thousands of sandboxes',
  } as const;
  if (facts.uid !== 0) {
    const found = `ran as user ${facts.uid}`;
    return [root, resource].map((head) => check(head, 'unknown', found, RUN_AS_ROOT));
  }
  const held = parseCapabilities(facts.files['/proc/self/status'] ?? '');
  if (held === undefined) {
    const found = '/proc/self/status tells no capabilities';
    return [root, resource].map((head) => check(head, 'unknown', found, 'mount procfs at /proc'));
  }
  const lacking = NEEDED_CAPABILITIES.filter((name) => !held.has(name));
  const grant =
    'take the limit off where DSec is started (container runtime, CapabilityBoundingSet=)';
  return [
    lacking.length === 0
      ? check(root, 'ok', 'root with the needed capabilities', '')
      : check(root, 'missing', `root without CAP_${lacking.join(', CAP_')}`, grant),
    held.has('SYS_RESOURCE')
      ? check(resource, 'ok', 'CAP_SYS_RESOURCE', '')
      : check(resource, 'degraded', 'no CAP_SYS_RESOURCE: hard limits cannot be raised', grant),
  ];
}

interface NamespaceRow {
  /** The name in /proc/self/ns. */
  readonly file: string;
  readonly option: string;
  readonly neededFor: string;
}

const NAMESPACES: Readonly<Record<NamespaceKind, NamespaceRow>> = {
  user: {
    file: 'user',
    option: 'USER_NS',
    neededFor: 'root inside a sandbox that is nobody outside',
  },
  mount: { file: 'mnt', option: 'NAMESPACES', neededFor: "a sandbox's own file tree" },
  pid: { file: 'pid', option: 'PID_NS', neededFor: "a sandbox's own processes" },
  net: { file: 'net', option: 'NET_NS', neededFor: "a sandbox's own network" },
  ipc: { file: 'ipc', option: 'IPC_NS', neededFor: 'shared memory and message queues kept apart' },
  uts: { file: 'uts', option: 'UTS_NS', neededFor: "a sandbox's own host name" },
  cgroup: { file: 'cgroup', option: 'CGROUPS', neededFor: 'hiding the cgroups of the host' },
  time: { file: 'time', option: 'TIME_NS', neededFor: 'clocks that go on after a restore' },
};

function namespace(facts: HostFacts, kind: NamespaceKind): HostCheck {
  const row = NAMESPACES[kind];
  const head = { id: `namespace.${kind}`, group: 'namespaces', neededFor: row.neededFor } as const;
  if (!facts.namespaceFiles.includes(row.file) && facts.namespaceFiles.length > 0) {
    const found = `no /proc/self/ns/${row.file}`;
    return check(head, 'missing', found, `a kernel with CONFIG_${row.option}=y`);
  }
  const allowed = `\`sysctl -w user.max_${kind === 'mount' ? 'mnt' : kind}_namespaces=65536\``;
  return checkOutcome(head, facts.namespaces[kind], `${allowed}, if that is 0`);
}
