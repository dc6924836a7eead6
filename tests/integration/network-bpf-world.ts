import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, rmdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { umount } from '@dsec/linux';
import { mountBpfDirectory, openPacketFilter, type PacketFilter } from '@dsec/network';

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

/** `scratch` lies in a private mount namespace. */
export async function createBpfWorld(scratch: string, sandboxCount: number): Promise<BpfWorld> {
  const cgroup = join(cgroup2Root(), `dsec-test-bpf-${process.pid}`);
  mkdirSync(cgroup);
  const bpfDirectory = join(scratch, 'bpf');
  mountBpfDirectory(bpfDirectory);
  const router = await startAgent([]);
  const outside = await startAgent([]);
  layOutside(router.pid, outside.pid);
  const namespaceFd = openSync(`/proc/${router.pid}/ns/net`, 'r');
  const sandboxes: TestSandbox[] = [];
  for (let slot = 1; slot <= sandboxCount; slot += 1) {
    sandboxes.push(await startSandbox(slot, join(cgroup, `sandbox-${slot}`), router.pid));
  }
  const control = await startSandbox(sandboxCount + 1, `${cgroup}-control`, router.pid);
  const open = () => openPacketFilter({ ...filterOptions(bpfDirectory, cgroup), namespaceFd });
  const world = { filter: open() };
  return {
    sandboxes,
    control,
    router,
    outside,
    cgroup,
    bpfDirectory,
    namespaceFd,
    get filter() {
      return world.filter;
    },
    reopen() {
      world.filter.close();
      world.filter = open();
      return world.filter;
    },
    async close() {
      for (const { slot } of sandboxes) world.filter.removeSandbox(slot);
      world.filter.close();
      for (const agent of [...sandboxes, control, router, outside]) await agent.stop();
      closeSync(namespaceFd);
      umount(bpfDirectory);
      for (const { slot } of sandboxes) rmdirSync(join(cgroup, `sandbox-${slot}`));
      rmdirSync(cgroup);
      rmdirSync(`${cgroup}-control`);
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
  const script = `${join_.map((file) => `echo $$ > ${file} && `).join('')}exec unshare -n python3 -u ${AGENT}`;
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
  mkdirSync(cgroup);
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

function layOutside(routerPid: number, outsidePid: number): void {
  configure(routerPid, [
    'link set lo up',
    `addr add ${GATEWAY}/32 dev lo`,
    `link add up0 type veth peer name eth0 netns ${outsidePid}`,
    'link set up0 up',
    'addr add 198.51.100.1/24 dev up0',
    'addr add 2001:db8:1::1/64 dev up0 nodad',
  ]);
  configure(outsidePid, [
    'link set lo up',
    'link set eth0 up',
    `addr add ${OUTSIDE}/24 dev eth0`,
    `addr add ${OUTSIDE_OTHER}/24 dev eth0`,
    `addr add ${OUTSIDE6}/64 dev eth0 nodad`,
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
