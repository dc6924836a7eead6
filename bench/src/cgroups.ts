/** Cgroups as a benchmark sees them: where they are mounted, what they have used, what is left of them. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

interface CgroupMount {
  readonly point: string;
  readonly version: 1 | 2;
}

export function cgroupMounts(): readonly CgroupMount[] {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .flatMap((line): CgroupMount[] => {
      const [, point = '', type] = line.split(' ');
      if (type !== 'cgroup' && type !== 'cgroup2') return [];
      return [{ point, version: type === 'cgroup' ? 1 : 2 }];
    });
}

/** A directory of that name in each hierarchy that has one. */
export function cgroupsNamed(name: string): string[] {
  const paths = cgroupMounts().map(({ point }) => join(point, name));
  return [...new Set(paths)].filter((path) => existsSync(path));
}

export function unifiedCgroup(name: string): string {
  const mount = cgroupMounts().find(({ version }) => version === 2);
  if (mount === undefined) throw new Error('this host has no cgroups of version 2 mounted');
  return join(mount.point, name);
}

/**
 * Processor time of all processes that are, or ever were, in a cgroup of version 2 or below it: the kernel's
 * own count in microseconds, which keeps the time of processes and groups that are gone.
 */
export function cgroupCpuMs(directory: string): number {
  const text = readFileSync(join(directory, 'cpu.stat'), 'utf8');
  return Number(/^usage_usec (\d+)$/m.exec(text)?.[1]) / 1000;
}

export interface MeasuredGroup {
  cpuMs(): number;
  remove(): void;
}

/** Puts a process, and with it its children, in a cgroup of its own. */
export function measureInGroup(name: string, pid: number): MeasuredGroup {
  const directory = unifiedCgroup(name);
  const inner = join(directory, 'worker');
  mkdirSync(inner, { recursive: true });
  writeFileSync(join(inner, 'cgroup.procs'), `${pid}`);
  return { cpuMs: () => cgroupCpuMs(directory), remove: () => removeCgroups(name) };
}

/** Directories of that name and what is below them, in all hierarchies. Throws when one is still in use. */
export function removeCgroups(name: string): void {
  for (const directory of cgroupsNamed(name)) removeTree(directory);
}

function removeTree(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(directory, entry.name));
  }
  rmdirSync(directory);
}
