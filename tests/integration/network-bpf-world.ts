import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, rmdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { umount } from '@dsec/linux';
import {
  type CompiledNetwork,
  mountBpfDirectory,
  type NameRule,
  openPacketFilter,
  type PacketFilter,
} from '@dsec/network';
import { type CleanupStack, createCleanupStack } from '@dsec/std';
import { inPrivateMountNamespace, isRoot } from './linux-support.ts';

/**
 * A small network that exists only in namespaces of its own: sandboxes, each behind a device, a router
 * that filters, and a host beyond it that answers.
 */
export interface BpfWorld {
  readonly sandboxes: readonly TestSandbox[];
  /** As a sandbox, but outside of the filter's cgroup and with a device that nobody watches. */
  readonly control: TestSandbox;
  /** In the namespace of the router, where the gateway's address is. */
  readonly router: Agent;
  /** Beyond the router, at `OUTSIDE` and `OUTSIDE6`. */
  readonly outside: Agent;
  readonly filter: PacketFilter;
  /** The directory whose children are the sandboxes' cgroups. */
  readonly cgroup: string;
  readonly bpfDirectory: string;
  readonly namespaceFd: number;
  /** Closes the filter and opens another one over what is pinned, as a restarted edge does. */
  reopen(): PacketFilter;
  close(): Promise<void>;
}

export interface Agent {
  readonly pid: number;
  /** Gives the value of a Python expression; see `network-bpf-agent.py` for what it may name. */
  run(expression: string): Promise<unknown>;
  stop(): Promise<void>;
}

export interface TestSandbox extends Agent {
  readonly slot: number;
  readonly address: string;
  readonly address6: string;
  readonly mac: string;
  /** The directory of its cgroup. */
  readonly cgroup: string;
  /** Of the router's end, where the sandbox sends all frames to. */
  readonly gatewayMac: string;
  readonly deviceIndex: number;
  readonly cgroupId: bigint;
}

export const GATEWAY = '169.254.77.1';
export const OUTSIDE = '198.51.100.2';
export const OUTSIDE_OTHER = '198.51.100.3';
export const OUTSIDE6 = '2001:db8:1::2';
const OBJECTS = join(import.meta.dirname, '../../native/build/bpf');
const AGENT = join(import.meta.dirname, 'network-bpf-agent.py');
const MAC_GATEWAY = '02:00:00:00:00:01';
const MAC_OUTSIDE = '02:00:00:00:00:02';

/** `scratch` lies in a private mount namespace. What was made before a failure is undone. */
export async function createBpfWorld(scratch: string, sandboxCount: number): Promise<BpfWorld> {
  const cleanup = createCleanupStack();
  try {
    return await makeWorld(scratch, sandboxCount, cleanup);
  } catch (thrown) {
    await cleanup.run();
    throw thrown;
  }
}

async function makeWorld(
  scratch: string,
  sandboxCount: number,
  cleanup: CleanupStack,
): Promise<BpfWorld> {
  const makeCgroup = (path: string) => {
    mkdirSync(path);
    cleanup.push(path, () => rmdirSync(path));
    return path;
  };
  const keep = <Kept extends Agent>(agent: Kept): Kept => {
    cleanup.push('agent', () => agent.stop());
    return agent;
  };
  const cgroup = makeCgroup(join(cgroup2Root(), `dsec-test-bpf-${process.pid}`));
  const bpfDirectory = join(scratch, 'bpf');
  mountBpfDirectory(bpfDirectory);
  cleanup.push('bpf', () => umount(bpfDirectory));
  const router = keep(await startAgent([]));
  const outside = keep(await startAgent([]));
  layOutside(router.pid, outside.pid);
  const namespaceFd = openSync(`/proc/${router.pid}/ns/net`, 'r');
  cleanup.push('namespace', () => closeSync(namespaceFd));
  const sandboxes: TestSandbox[] = [];
  for (let slot = 1; slot <= sandboxCount; slot += 1) {
    const own = makeCgroup(join(cgroup, `sandbox-${slot}`));
    sandboxes.push(keep(await startSandbox(slot, own, router.pid)));
  }
  const apart = makeCgroup(`${cgroup}-control`);
  const control = keep(await startSandbox(sandboxCount + 1, apart, router.pid));
  const open = () => openPacketFilter({ ...filterOptions(bpfDirectory, cgroup), namespaceFd });
  let filter = open();
  cleanup.push('filter', () => filter.close());
  return {
    sandboxes,
    control,
    router,
    outside,
    cgroup,
    bpfDirectory,
    namespaceFd,
    get filter() {
      return filter;
    },
    reopen() {
      filter.close();
      filter = open();
      return filter;
    },
    async close() {
      const failures = await cleanup.run();
      if (failures[0] !== undefined) throw failures[0].error;
    },
  };
}

export function filterOptions(directory: string, cgroup: string) {
  return {
    objectsDirectory: OBJECTS,
    directory,
    cgroup,
    gateway: {
      address: GATEWAY,
      ports: [
        { port: 53, protocol: 'udp' },
        { port: 80, protocol: 'tcp' },
      ],
    },
    refused: ['100.96.0.0/12', '169.254.0.0/16', `${OUTSIDE_OTHER}/32`],
    slotsMax: 1_100,
    rulesMax: 32,
  } as const;
}

/** What `addSandbox` takes. */
export function filtered(sandbox: TestSandbox, generation = 1) {
  const { slot, cgroupId, deviceIndex: index, address, address6, mac } = sandbox;
  return { slot, generation, cgroupId, device: { index, address, address6, mac } };
}

/** Where cgroup v2 is mounted, beside version 1 or alone. */
export function cgroup2Root(): string {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const found = mounts.map((line) => line.split(' ')).find(([, , type]) => type === 'cgroup2');
  if (found?.[1] === undefined) throw new Error('cgroup v2 is not mounted');
  return found[1];
}

/** Joins the cgroup, then gets a network namespace of its own. */
async function startAgent(join_: readonly string[]): Promise<Agent> {
  const joins = join_.map((file) => `echo $$ > ${file} && `).join('');
  const script = `${joins}exec unshare -n python3 -u ${AGENT}`;
  const child = spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting: ((line: string) => void)[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(line));
  const nextLine = () => new Promise<string>((resolve) => waiting.push(resolve));
  await nextLine();
  return {
    pid: pidOf(child),
    async run(expression) {
      const line = nextLine();
      child.stdin.write(`${JSON.stringify(expression)}\n`);
      const { value, error } = JSON.parse(await line);
      if (error !== undefined) throw new Error(`${expression}: ${error}`);
      return value;
    },
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('no process');
  return child.pid;
}

async function startSandbox(slot: number, cgroup: string, routerPid: number): Promise<TestSandbox> {
  const agent = await startAgent([join(cgroup, 'cgroup.procs')]);
  const place = {
    slot,
    cgroup,
    address: `100.96.0.${10 + slot}`,
    address6: `2001:db8:77::${10 + slot}`,
    mac: `02:00:00:00:01:${(10 + slot).toString(16).padStart(2, '0')}`,
    gatewayMac: MAC_GATEWAY,
  };
  const device = `sb${slot}`;
  configure(routerPid, [
    `link add ${device} type veth peer name eth0 address ${place.mac} netns ${agent.pid}`,
    `link set ${device} address ${MAC_GATEWAY} up`,
    `route add ${place.address}/32 dev ${device}`,
    `-6 route add ${place.address6}/128 dev ${device}`,
    `neigh add ${place.address6} lladdr ${place.mac} dev ${device} nud permanent`,
  ]);
  configure(agent.pid, [
    'link set lo up',
    'link set eth0 up',
    `addr add ${place.address}/32 dev eth0`,
    `addr add ${place.address6}/128 dev eth0 nodad`,
    `neigh add ${GATEWAY} lladdr ${MAC_GATEWAY} dev eth0 nud permanent`,
    `neigh add 2001:db8:77::1 lladdr ${MAC_GATEWAY} dev eth0 nud permanent`,
    `route add default via ${GATEWAY} dev eth0 onlink`,
    '-6 route add default via 2001:db8:77::1 dev eth0 onlink',
  ]);
  const shown = inNamespace(routerPid, ['ip', '-o', 'link', 'show', 'dev', device]);
  const deviceIndex = Number.parseInt(shown, 10);
  const cgroupId = statSync(cgroup, { bigint: true }).ino;
  return { ...agent, ...place, deviceIndex, cgroupId };
}

/** Neighbours of IPv6 are permanent, as a new device may not ask for them for a second. */
function layOutside(routerPid: number, outsidePid: number): void {
  configure(routerPid, [
    'link set lo up',
    `addr add ${GATEWAY}/32 dev lo`,
    `link add up0 type veth peer name eth0 address ${MAC_OUTSIDE} netns ${outsidePid}`,
    `link set up0 address ${MAC_GATEWAY} up`,
    'addr add 198.51.100.1/24 dev up0',
    'addr add 2001:db8:1::1/64 dev up0 nodad',
    `neigh add ${OUTSIDE6} lladdr ${MAC_OUTSIDE} dev up0 nud permanent`,
  ]);
  configure(outsidePid, [
    'link set lo up',
    'link set eth0 up',
    `addr add ${OUTSIDE}/24 dev eth0`,
    `addr add ${OUTSIDE_OTHER}/24 dev eth0`,
    `addr add ${OUTSIDE6}/64 dev eth0 nodad`,
    `neigh add 2001:db8:1::1 lladdr ${MAC_GATEWAY} dev eth0 nud permanent`,
    'route add 100.96.0.0/12 via 198.51.100.1',
    '-6 route add 2001:db8:77::/64 via 2001:db8:1::1',
  ]);
  for (const name of ['ipv4/ip_forward', 'ipv6/conf/all/forwarding']) {
    inNamespace(routerPid, ['sh', '-c', `echo 1 > /proc/sys/net/${name}`]);
  }
  inNamespace(outsidePid, ['sh', '-c', 'echo 3 > /proc/sys/net/ipv4/tcp_fastopen']);
}

/** Runs lines of ip(8) in the network namespace of a process. */
export function configure(pid: number, lines: readonly string[]): void {
  for (const line of lines) inNamespace(pid, ['ip', ...line.split(' ')]);
}

export function inNamespace(pid: number, command: readonly string[]): string {
  return execFileSync('nsenter', [`--net=/proc/${pid}/ns/net`, ...command], { encoding: 'utf8' });
}

/** What the world needs of the machine and does not have; undefined if it can be made. */
export function missingForBpfWorld(): string | undefined {
  if (!isRoot || !inPrivateMountNamespace()) return 'not root in a mount namespace of its own';
  for (const command of ['ip', 'nsenter', 'python3']) {
    try {
      execFileSync('sh', ['-c', `command -v ${command}`]);
    } catch {
      return `${command} is not installed`;
    }
  }
  try {
    statSync(join(OBJECTS, 'packet.bpf.o'));
  } catch {
    return 'native/build/bpf is not built';
  }
  return undefined;
}

export const DEDICATED: NameRule = {
  pattern: 'db.example.org',
  ports: [[443, 443]],
  isDedicated: true,
};

/** Rules that open these ports of the host outside. */
export function opening(
  version: number,
  ports: readonly number[],
  names: readonly NameRule[] = [],
): CompiledNetwork {
  const ranges = ports.map((port): [number, number] => [port, port]);
  const addresses = ports.length === 0 ? [] : [{ prefix: `${OUTSIDE}/32`, ports: ranges }];
  return { version, addresses, names };
}

/** A time of the monotonic clock. */
export const inMs = (ms: number) => Number(process.hrtime.bigint() / 1_000_000n) + ms;
/** The code of what it throws. */
export const codeOf = (work: () => unknown) => {
  try {
    work();
    return undefined;
  } catch (thrown) {
    return (thrown as { code: string }).code;
  }
};

/** Adds a sandbox anew, with rules. */
export function renewed(
  { filter }: BpfWorld,
  sandbox: TestSandbox,
  network: CompiledNetwork,
  generation: number,
): PacketFilter {
  filter.removeSandbox(sandbox.slot);
  filter.addSandbox(filtered(sandbox, generation));
  filter.setRules(sandbox.slot, network);
  return filter;
}

export const tcpOf = (sandbox: TestSandbox, port: number) =>
  sandbox.run(`tcp('${OUTSIDE}', ${port})`);
