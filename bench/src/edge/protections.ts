/**
 * Which protections a sandbox has, read from the host: /proc and the cgroups of its PID 1 and of a command
 * in it. What the edge says of itself does not count.
 */
import { existsSync, readdirSync, readFileSync, readlinkSync, statfsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { PROC_PARTS, SANDBOX_ID_COUNT, SANDBOX_ID_FIRST, type SandboxLimits } from '@dsec/protocol';
import { cgroupMounts } from '../cgroups.ts';

export interface SampledSandbox {
  /** On the host. */
  readonly agentPid: number;
  readonly commandPid: number;
  readonly slot: number;
  readonly limits: Required<SandboxLimits>;
}

interface Check {
  readonly name: string;
  holds(sandbox: SampledSandbox): boolean;
}

const NAMESPACES = ['mnt', 'pid', 'uts', 'ipc', 'net', 'cgroup', 'user'];
/** MODULE, RAWIO, PTRACE, SYS_ADMIN, BOOT, SYS_TIME, MKNOD, NET_RAW, NET_ADMIN, MAC, SYSLOG, PERFMON, BPF. */
const FORBIDDEN = [12, 13, 16, 17, 19, 21, 22, 25, 27, 32, 33, 34, 38, 39].map(
  (bit) => 1n << BigInt(bit),
);

const CHECKS: readonly Check[] = [
  { name: 'user-namespace', holds: hasOwnUsers },
  { name: 'id-range', holds: hasOwnIds },
  {
    name: 'namespaces',
    holds: ({ commandPid }) => NAMESPACES.every((n) => differs(n, commandPid)),
  },
  {
    name: 'seccomp-filter',
    holds: each((pid) => field(pid, 'Seccomp') === '2' && filters(pid) > 0),
  },
  { name: 'no-new-privs', holds: each((pid) => field(pid, 'NoNewPrivs') === '1') },
  { name: 'capabilities', holds: each(hasFewCapabilities) },
  { name: 'masked-paths', holds: each(isMasked) },
  { name: 'memory-limit', holds: (s) => limitIs(s, 'memory', memoryMax, s.limits.memoryBytes) },
  { name: 'pids-limit', holds: (s) => limitIs(s, 'pids', pidsMax, s.limits.pidsMax) },
  { name: 'cpu-limit', holds: (s) => limitIs(s, 'cpu', cpuMillicores, s.limits.cpuMillicores) },
  { name: 'network-namespace', holds: each(hasLoopbackAlone) },
  { name: 'upper-limits', holds: hasBoundedUpper },
  { name: 'nodev-nosuid', holds: each(hasInertRoot) },
];

/** Names of all that hold. Throws with those that do not: a figure without them is none. */
export function checkProtections(sandbox: SampledSandbox): string[] {
  const absent = CHECKS.filter(({ holds }) => !holds(sandbox)).map(({ name }) => name);
  if (absent.length > 0) throw new Error(`protections are absent: ${absent.join(', ')}`);
  return CHECKS.map(({ name }) => name);
}

function each(holds: (pid: number) => boolean): Check['holds'] {
  return ({ agentPid, commandPid }) => holds(agentPid) && holds(commandPid);
}

const status = (pid: number) => readFileSync(`/proc/${pid}/status`, 'utf8');

function field(pid: number, name: string): string {
  return new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status(pid))?.[1] ?? '';
}

const filters = (pid: number) => Number(field(pid, 'Seccomp_filters'));
const namespace = (pid: number | 'self', name: string) => readlinkSync(`/proc/${pid}/ns/${name}`);
const differs = (name: string, pid: number) => namespace(pid, name) !== namespace('self', name);

/** Of its own, and commands in another one than the agent. */
function hasOwnUsers({ agentPid, commandPid }: SampledSandbox): boolean {
  const [agent, command] = [agentPid, commandPid].map((pid) => namespace(pid, 'user'));
  return differs('user', agentPid) && differs('user', commandPid) && agent !== command;
}

function hasOwnIds({ agentPid, commandPid, slot }: SampledSandbox): boolean {
  const first = SANDBOX_ID_FIRST + slot * SANDBOX_ID_COUNT;
  const isOurs = (id: string) => Number(id) >= first && Number(id) < first + SANDBOX_ID_COUNT;
  const idsOf = (pid: number) => ['Uid', 'Gid'].flatMap((name) => field(pid, name).split('\t'));
  const isSame = field(agentPid, 'Uid') === field(commandPid, 'Uid');
  return !isSame && [...idsOf(agentPid), ...idsOf(commandPid)].every(isOurs);
}

function hasFewCapabilities(pid: number): boolean {
  const sets = ['CapPrm', 'CapEff', 'CapAmb', 'CapBnd'].map((name) =>
    BigInt(`0x${field(pid, name)}`),
  );
  return sets.every((set) => FORBIDDEN.every((bit) => (set & bit) === 0n));
}

/** Mount points of a process with their options. */
function mountsOf(pid: number): Map<string, readonly string[]> {
  const lines = readFileSync(`/proc/${pid}/mountinfo`, 'utf8').trim().split('\n');
  return new Map(
    lines.map((line) => {
      const [, , , , point = '', options = ''] = line.split(' ');
      return [point, options.split(',')];
    }),
  );
}

function isMasked(pid: number): boolean {
  const mounts = mountsOf(pid);
  const there = (names: readonly string[]) => names.filter((name) => existsSync(`/proc/${name}`));
  const isReadOnly = (name: string) => mounts.get(`/proc/${name}`)?.includes('ro');
  const { masked, guarded } = PROC_PARTS;
  return (
    there(masked).every((name) => mounts.has(`/proc/${name}`)) && there(guarded).every(isReadOnly)
  );
}

function hasInertRoot(pid: number): boolean {
  const options = mountsOf(pid).get('/') ?? [];
  return options.includes('nodev') && options.includes('nosuid');
}

function hasLoopbackAlone(pid: number): boolean {
  const devices = readFileSync(`/proc/${pid}/net/dev`, 'utf8').trim().split('\n').slice(2);
  return devices.length === 1 && devices[0]?.trim().startsWith('lo:') === true;
}

/** The directories of the launcher itself, which come on top of what a sandbox may have. */
const OWN_INODES_MAX = 8;

/** The overlay answers for its upper. */
function hasBoundedUpper({ agentPid, limits }: SampledSandbox): boolean {
  const { bsize, blocks, files } = statfsSync(`/proc/${agentPid}/root`);
  const isBounded = blocks > 0 && bsize * blocks <= limits.diskBytes;
  return isBounded && files > 0 && files <= limits.inodesMax + OWN_INODES_MAX;
}

function limitIs(
  { commandPid }: SampledSandbox,
  controller: string,
  read: (directory: string) => number,
  wanted: number,
): boolean {
  const directory = cgroupOf(commandPid, controller);
  return directory !== undefined && read(directory) === wanted;
}

/** The directory in which a process is limited by a controller. */
function cgroupOf(pid: number, controller: string): string | undefined {
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n');
  const parsed = lines.map((line) => /^\d+:([^:]*):(.*)$/.exec(line) ?? []);
  const first = parsed.find(([, names = '']) => names.split(',').includes(controller));
  const [, names = '', path = ''] = first ?? parsed.find(([, text]) => text === '') ?? [];
  const version = names === '' ? 2 : 1;
  const mounts = cgroupMounts().filter((mount) => mount.version === version);
  const mount = version === 2 ? mounts[0] : mounts.find(({ point }) => holds(point, controller));
  return mount === undefined ? undefined : join(mount.point, path);
}

const holds = (point: string, controller: string) =>
  basename(point).split(',').includes(controller);
const number = (directory: string, name: string) =>
  Number(readFileSync(join(directory, name), 'utf8').trim().split(' ')[0]);

function memoryMax(directory: string): number {
  const name = readdirSync(directory).includes('memory.max')
    ? 'memory.max'
    : 'memory.limit_in_bytes';
  return number(directory, name);
}

const pidsMax = (directory: string) => number(directory, 'pids.max');

function cpuMillicores(directory: string): number {
  if (!existsSync(join(directory, 'cpu.max'))) {
    const period = number(directory, 'cpu.cfs_period_us');
    return (1000 * number(directory, 'cpu.cfs_quota_us')) / period;
  }
  const [quota, period] = readFileSync(join(directory, 'cpu.max'), 'utf8').split(' ').map(Number);
  return (1000 * (quota ?? 0)) / (period ?? 1);
}
