/** A sandbox as the kernel of the host has it: never asked of the sandbox itself. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxId } from '@dsec/std';
import { cgroupDirectories } from '../integration/launcher-world.ts';

export interface HostProcess {
  readonly pid: number;
  /** As the sandbox itself numbers it. */
  readonly inner: number;
  readonly name: string;
  readonly startTime: string;
}

export interface HostView {
  /** Of the sandbox, its first process first. */
  processes(): HostProcess[];
  agent(): HostProcess;
  /** What a session could have changed of the agent, in one value to compare. */
  agentState(): Readonly<Record<string, string>>;
  /** Links to the namespaces of every process, each once. */
  namespaces(): string[];
  /** Mount tables of every process, each once. */
  mounts(): string[];
  /** Of its life directory; empty when it is gone. */
  group(): string;
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

const link = (path: string): string => {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
};

const SPACES = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'time', 'user', 'uts'];

function processOf(pid: number): HostProcess {
  const status = read(`/proc/${pid}/status`);
  const inner = /^NSpid:.*\t(\d+)$/m.exec(status)?.[1] ?? '0';
  const fields = read(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? [];
  const name = /^Name:\t(.*)$/m.exec(status)?.[1] ?? '';
  return { pid, inner: Number(inner), name, startTime: fields[19] ?? '' };
}

/** Cgroups of a sandbox may have groups below them. */
function pidsBelow(directory: string): number[] {
  if (!existsSync(directory)) return [];
  const inner = readdirSync(directory, { withFileTypes: true }).filter((e) => e.isDirectory());
  const own = read(join(directory, 'cgroup.procs')).split('\n').filter(Boolean).map(Number);
  return [...own, ...inner.flatMap(({ name }) => pidsBelow(join(directory, name)))];
}

function stateOf({ pid, startTime }: HostProcess): Readonly<Record<string, string>> {
  const status = read(`/proc/${pid}/status`);
  const of = (name: string) => new RegExp(`^${name}:\\t(.*)$`, 'm').exec(status)?.[1] ?? '';
  const fields = read(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ') ?? [];
  return {
    ...{ pid: `${pid}`, startTime, limits: read(`/proc/${pid}/limits`) },
    ...{
      oomScoreAdj: read(`/proc/${pid}/oom_score_adj`),
      slack: read(`/proc/${pid}/timerslack_ns`),
    },
    ...{ priority: fields[15] ?? '', nice: fields[16] ?? '', policy: fields[38] ?? '' },
    ...{ cpus: of('Cpus_allowed_list'), tracer: of('TracerPid'), group: fields[2] ?? '' },
    ...{ name: of('Name'), caught: of('SigCgt'), pending: of('ShdPnd'), ids: of('Uid') },
  };
}

export function hostViewOf(edgeId: string, id: SandboxId): HostView {
  const group = () =>
    cgroupDirectories(edgeId)
      .flatMap((path) =>
        existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : [],
      )
      .find((path) => path.includes(`/${id}-`)) ?? '';
  const processes = () =>
    pidsBelow(group())
      .map(processOf)
      .filter(({ inner }) => inner > 0)
      .sort((a, b) => a.inner - b.inner);
  const agent = () => {
    const [first] = processes();
    if (first?.inner !== 1) throw new Error(`${id} has no first process`);
    return first;
  };
  return {
    ...{ group, processes, agent },
    agentState: () => stateOf(agent()),
    namespaces: () => {
      const links = processes().flatMap(({ pid }) =>
        SPACES.map((space) => link(`/proc/${pid}/ns/${space}`)),
      );
      return [...new Set(links.filter(Boolean))].sort();
    },
    mounts: () => [...new Set(processes().map(({ pid }) => read(`/proc/${pid}/mountinfo`)))],
  };
}
