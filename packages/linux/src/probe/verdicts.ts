import type { HostCheck, ProbedBackend, Verdict, VerdictReason } from './report.ts';

/** What a backend cannot do without. Of several ids in one entry, any one is enough. */
interface Requirements {
  readonly needs: readonly (string | readonly string[])[];
  /** Ids, or prefixes that end with a dot, whose lack makes it slower or weaker. */
  readonly wants: readonly string[];
}

const KERNEL = ['kernel.version', 'kernel.architecture'] as const;
const LAYER_NEEDS = [
  ...KERNEL,
  'fs.erofs-file',
  ['fs.overlay-descriptor', 'fs.overlay-path'],
] as const;
const NAMESPACE_NEEDS = ['user', 'mount', 'pid', 'net', 'ipc', 'uts', 'cgroup'].map(
  (kind) => `namespace.${kind}`,
);
const CGROUP_NEEDS = ['cgroup.tree', 'cgroup.create', 'cgroup.kill', 'cgroup.freeze'] as const;
const MACHINE_WANTS = ['machine.', 'memory.', 'limit.'] as const;

const REQUIREMENTS: Readonly<Record<ProbedBackend, Requirements>> = {
  layers: {
    needs: LAYER_NEEDS,
    wants: ['fs.', 'machine.disk'],
  },
  container: {
    needs: [
      ...LAYER_NEEDS,
      'privilege.root',
      ...NAMESPACE_NEEDS,
      ...CGROUP_NEEDS,
      'cgroup.cpu',
      'cgroup.memory',
      'cgroup.pids',
      'fs.idmap',
      'security.seccomp',
    ],
    wants: ['fs.', 'namespace.', 'privilege.', 'cgroup.', 'security.', 'bpf.', ...MACHINE_WANTS],
  },
  microvm: {
    needs: [...KERNEL, 'privilege.root', ...CGROUP_NEEDS, 'vm.qemu'],
    wants: ['vm.', 'fs.fuse', 'privilege.', 'cgroup.', 'bpf.sched-cls', ...MACHINE_WANTS],
  },
  fullvm: {
    needs: [...KERNEL, 'privilege.root', ...CGROUP_NEEDS, 'vm.qemu'],
    wants: ['vm.', 'privilege.', 'cgroup.', 'bpf.sched-cls', ...MACHINE_WANTS],
  },
};

/** Whether a backend cannot do without a check, or without one of several that it is among. */
export function isNeeded(backend: ProbedBackend, checkId: string): boolean {
  return REQUIREMENTS[backend].needs.flat().includes(checkId);
}

/** What a backend can do on a host with these checks. Pure. */
export function verdictOf(backend: ProbedBackend, checks: readonly HostCheck[]): Verdict {
  const { needs, wants } = REQUIREMENTS[backend];
  const byId = new Map(checks.map((check) => [check.id, check]));
  const decided = needs.map((need) => bestOf([need].flat(), byId));
  const lacking = decided.filter((check) => check.status === 'missing');
  const undecided = decided.filter((check) => check.status === 'unknown');
  const isWanted = (id: string) =>
    wants.some((want) => (want.endsWith('.') ? id.startsWith(want) : id === want));
  const weaker = checks
    .filter((check) => check.status !== 'ok' && (decided.includes(check) || isWanted(check.id)))
    .sort((a, b) => RANK[b.status] - RANK[a.status]);
  const reasons = [...new Set([...lacking, ...undecided, ...weaker])].map(reasonOf);
  if (lacking.length > 0) return { status: 'impossible', reasons };
  if (undecided.length > 0) return { status: 'unknown', reasons };
  return { status: weaker.length > 0 ? 'degraded' : 'possible', reasons };
}

const RANK = { ok: 0, degraded: 1, unknown: 2, missing: 3 } as const;

function bestOf(ids: readonly string[], byId: ReadonlyMap<string, HostCheck>): HostCheck {
  const candidates = ids.map((id) => byId.get(id) ?? unprobed(id));
  return candidates.reduce((best, check) =>
    RANK[check.status] < RANK[best.status] ? check : best,
  );
}

/** A requirement that no check looked at counts as unknown, not as met. */
function unprobed(id: string): HostCheck {
  const [found, neededFor, remedy] = ['not looked at', '', ''];
  return { id, group: 'machine', status: 'unknown', found, neededFor, remedy };
}

function reasonOf(check: HostCheck): VerdictReason {
  return { check: check.id, status: check.status, why: check.found };
}
