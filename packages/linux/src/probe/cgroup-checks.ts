import { check, checkOutcome, RUN_AS_ROOT } from './check.ts';
import type { HostFacts } from './facts.ts';
import { type MountRow, parseMountinfo, parseProcCgroups } from './parse.ts';
import type { HostCheck } from './report.ts';

/**
 * Cgroups: the v2 tree carries the life of a sandbox (kill, freeze, usage, pressure), and each limit comes
 * from the v2 controller, else from v1. Pure.
 */
export function cgroupChecks(facts: HostFacts): HostCheck[] {
  const mounts = parseMountinfo(facts.files['/proc/self/mountinfo'] ?? '');
  return [
    tree(mounts),
    create(facts),
    ...LIFE_FILES.map((row) => lifeFile(facts, row)),
    ...CONTROLLERS.map((row) => controller(facts, mounts, row)),
  ];
}

function tree(mounts: readonly MountRow[]): HostCheck {
  const head = {
    id: 'cgroup.tree',
    group: 'cgroups',
    neededFor: 'killing, freezing and measuring a sandbox as one',
  } as const;
  const unified = mounts.find((row) => row.type === 'cgroup2');
  const legacy = mounts.some((row) => row.type === 'cgroup');
  if (unified === undefined) {
    const mount = 'mount -t cgroup2 none /sys/fs/cgroup/unified';
    const remedy = legacy
      ? `\`mkdir -p /sys/fs/cgroup/unified && ${mount}\`, or boot with systemd.unified_cgroup_hierarchy=1`
      : '`mount -t cgroup2 none /sys/fs/cgroup`; in a container, give it the tree writable';
    return check(head, 'missing', legacy ? 'cgroup v1 only' : 'no cgroups mounted', remedy);
  }
  if (!legacy) return check(head, 'ok', `v2 at ${unified.target}`, '');
  const remedy = 'boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all';
  return check(head, 'degraded', `hybrid: v2 at ${unified.target}, limits in v1`, remedy);
}

function create(facts: HostFacts): HostCheck {
  const head = {
    id: 'cgroup.create',
    group: 'cgroups',
    neededFor: 'one cgroup for each sandbox',
  } as const;
  const remedy = 'mount the cgroup v2 tree writable (in a container: --cgroupns=private and rw)';
  if (facts.cgroupControllers === undefined) return check(head, 'missing', 'no v2 tree', remedy);
  return checkOutcome(head, facts.cgroupCreate, remedy);
}

interface LifeFile {
  readonly id: string;
  readonly file: string;
  readonly neededFor: string;
  readonly remedy: string;
}

const LIFE_FILES: readonly LifeFile[] = [
  {
    id: 'cgroup.kill',
    file: 'cgroup.kill',
    neededFor: 'ending every process of a sandbox at once',
    remedy: 'a kernel of version 5.14 or newer',
  },
  {
    id: 'cgroup.freeze',
    file: 'cgroup.freeze',
    neededFor: 'pause, and a still moment for pack_diff',
    remedy: 'a kernel of version 5.2 or newer',
  },
  {
    id: 'cgroup.pressure',
    file: 'memory.pressure',
    neededFor: 'admission by the pressure of each sandbox',
    remedy: 'CONFIG_PSI=y, and boot with psi=1',
  },
];

function lifeFile(facts: HostFacts, row: LifeFile): HostCheck {
  const head = { id: row.id, group: 'cgroups', neededFor: row.neededFor } as const;
  if (facts.cgroupControllers === undefined) {
    return check(head, 'missing', 'no v2 tree', 'see cgroup.tree');
  }
  if (facts.cgroupFiles === undefined) {
    return check(head, 'unknown', 'no v2 cgroup below the root could be seen', RUN_AS_ROOT);
  }
  const there = facts.cgroupFiles.includes(row.file);
  return check(head, there ? 'ok' : 'missing', there ? row.file : `no ${row.file}`, row.remedy);
}

interface Controller {
  readonly name: string;
  /** Its name in v1, where that differs. */
  readonly legacyName?: string;
  readonly option: string;
  readonly neededFor: string;
  /** What is lost on v1. */
  readonly legacyLoss: string;
}

const CONTROLLERS: readonly Controller[] = [
  {
    name: 'cpu',
    option: 'CGROUP_SCHED',
    neededFor: 'cpu limits and the LS and BE classes',
    legacyLoss: 'no cpu.idle beside the v2 tree; a join costs milliseconds',
  },
  {
    name: 'memory',
    option: 'MEMCG',
    neededFor: 'memory limits, OOM kept inside a sandbox, reclaim of paused ones',
    legacyLoss: 'no memory.high and memory.reclaim; dying cgroups pile up',
  },
  {
    name: 'pids',
    option: 'CGROUP_PIDS',
    neededFor: 'a limit on processes',
    legacyLoss: 'a join costs milliseconds',
  },
  {
    name: 'io',
    legacyName: 'blkio',
    option: 'BLK_CGROUP',
    neededFor: 'disk bandwidth limits',
    legacyLoss: 'buffered writes are not counted',
  },
  {
    name: 'cpuset',
    option: 'CPUSETS',
    neededFor: 'pinning to cores',
    legacyLoss: 'a join costs milliseconds',
  },
];

function controller(facts: HostFacts, mounts: readonly MountRow[], row: Controller): HostCheck {
  const { name, legacyName = name, neededFor } = row;
  const head = { id: `cgroup.${name}`, group: 'cgroups', neededFor } as const;
  if (facts.cgroupControllers?.includes(name)) return check(head, 'ok', 'v2', '');
  const legacy = mounts.find(
    (mount) => mount.type === 'cgroup' && mount.superOptions.includes(legacyName),
  );
  if (legacy !== undefined) {
    const found = `v1 at ${legacy.target}: ${row.legacyLoss}`;
    return check(head, 'degraded', found, `boot with cgroup_no_v1=${legacyName}`);
  }
  const known = parseProcCgroups(facts.files['/proc/cgroups'] ?? '').find(
    (candidate) => candidate.name === legacyName,
  );
  if (known === undefined) {
    return check(head, 'missing', 'not in this kernel', `a kernel with CONFIG_${row.option}=y`);
  }
  if (!known.enabled) {
    return check(head, 'missing', 'switched off at boot', `boot with cgroup_enable=${legacyName}`);
  }
  const remedy = `enable it from the root of the tree down: \`echo +${name} > cgroup.subtree_control\``;
  return check(head, 'missing', 'in the kernel, but in no mounted tree', remedy);
}
