/**
 * Which protections a sandbox has, read from the host: /proc and the cgroups of its PID 1 and of a command
 * in it. What the edge says of itself does not count.
 */
import { existsSync, readdirSync, readFileSync, readlinkSync, statfsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { PROC_PARTS, SANDBOX_ID_COUNT, SANDBOX_ID_FIRST, type SandboxLimits } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import { cgroupMounts } from '../cgroups.ts';

export interface SampledSandbox {
  /** On the host. */
  readonly agentPid: number;
  readonly commandPid: number;
  readonly slot: number;
  readonly limits: Required<SandboxLimits>;
  readonly upperDriver: string;
  /** To the router of a node. */
  readonly isLinked: boolean;
}

interface Check {
  readonly name: string;
  /** False where the kernel tells the host nothing of it; default: true. */
  isSeen?(sandbox: SampledSandbox): boolean;
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
  {
    name: 'network-namespace',
    holds: ({ agentPid, commandPid, isLinked }) =>
      [agentPid, commandPid].every((pid) => hasDevices(pid, isLinked ? ['eth0', 'lo'] : ['lo'])),
  },
  {
    name: 'upper-limits',
    // The quota of a subvolume is not part of what btrfs says of its size.
    isSeen: ({ upperDriver }) => upperDriver !== 'btrfs',
    holds: hasBoundedUpper,
  },
  { name: 'nodev-nosuid', holds: each(hasInertRoot) },
];

/** Names of all that can be seen and hold. Throws with those that do not: a figure without them is none. */
export function checkProtections(sandbox: SampledSandbox): string[] {
  const seen = CHECKS.filter(({ isSeen }) => isSeen?.(sandbox) !== false);
  const absent = seen.filter(({ holds }) => !holds(sandbox)).map(({ name }) => name);
  if (absent.length > 0) throw new Error(`protections are absent: ${absent.join(', ')}`);
  return seen.map(({ name }) => name);
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

function hasDevices(pid: number, names: readonly string[]): boolean {
  const lines = readFileSync(`/proc/${pid}/net/dev`, 'utf8').trim().split('\n').slice(2);
  const devices = lines.map((line) => line.trim().split(':')[0]);
  return devices.sort().join(' ') === names.join(' ');
}

/** What comes on top of what a sandbox may have: directories of the launcher, tables of a file system. */
function ownOf({ upperDriver, limits }: SampledSandbox): { bytes: number; inodes: number } {
  if (upperDriver !== 'image') return { bytes: 0, inodes: 8 };
  const groups = Math.ceil(limits.diskBytes / EXT4_GROUP_BYTES) + 1;
  return { bytes: limits.diskBytes / 256 + 2 * MIB, inodes: 32 + groups * EXT4_INODES_STEP };
}

const EXT4_GROUP_BYTES = 128 * MIB;
/** Each group has a multiple of so many. */
const EXT4_INODES_STEP = 16;

/** The overlay answers for its upper. */
function hasBoundedUpper(sandbox: SampledSandbox): boolean {
  const { agentPid, limits } = sandbox;
  const { bsize, blocks, files } = statfsSync(`/proc/${agentPid}/root`);
  const own = ownOf(sandbox);
  const isBounded = blocks > 0 && bsize * blocks <= limits.diskBytes + own.bytes;
  return isBounded && files > 0 && files <= limits.inodesMax + own.inodes;
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
