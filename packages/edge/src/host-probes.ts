/** What an edge asks its host before it takes another sandbox. Injected, so that tests need no pressure. */
import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { readSysctl } from '@dsec/linux';
import { DsecError, KIB } from '@dsec/std';

export interface HostSample {
  readonly cpuCount: number;
  readonly memoryTotalBytes: number;
  readonly memoryAvailableBytes: number;
  /** Of the file system with the least part free among those that sandboxes fill. */
  readonly diskTotalBytes: number;
  readonly diskAvailableBytes: number;
  /** Processes and threads of the host. */
  readonly pidsUsed: number;
  /** How many of those it can have. */
  readonly pidMax: number;
  /** Share of time, over ten seconds, in which some task waited; absent on kernels without PSI. */
  readonly cpuPressurePct: number | undefined;
  readonly memoryPressurePct: number | undefined;
  readonly ioPressurePct: number | undefined;
}

export type HostProbe = () => HostSample;

/** Probes this host; `directories` lie on the file systems that sandboxes fill. Some 0.2 ms. */
export function createHostProbe(directories: readonly string[]): HostProbe {
  const cpuCount = availableParallelism();
  return () => {
    const meminfo = readFileSync('/proc/meminfo', 'utf8');
    const disk = directories.map(diskOf).reduce((a, b) => (freePart(a) <= freePart(b) ? a : b));
    return {
      ...{ cpuCount, pidMax: pidMax(), pidsUsed: tasksOf(readFileSync('/proc/loadavg', 'utf8')) },
      memoryTotalBytes: meminfoBytes(meminfo, 'MemTotal'),
      memoryAvailableBytes: meminfoBytes(meminfo, 'MemAvailable'),
      diskTotalBytes: disk.total,
      diskAvailableBytes: disk.available,
      cpuPressurePct: pressureOf('cpu'),
      memoryPressurePct: pressureOf('memory'),
      ioPressurePct: pressureOf('io'),
    };
  };
}

/** Each has a number, and there is a limit on those that have one. Both may be raised while an edge runs. */
function pidMax(): number {
  const limits = ['kernel.pid_max', 'kernel.threads-max'].map((name) => Number(readSysctl(name)));
  return Math.min(...limits);
}

interface Disk {
  readonly total: number;
  readonly available: number;
}

function diskOf(directory: string): Disk {
  const { bsize, blocks, bavail } = statfsSync(directory);
  return { total: bsize * blocks, available: bsize * bavail };
}

/** A file system that counts no blocks is never full. */
const freePart = ({ total, available }: Disk) => (total === 0 ? 1 : available / total);

/** The number of tasks is behind the slash: `0.20 0.18 0.12 1/80 11206`. */
function tasksOf(loadavg: string): number {
  return Number(/\d+\/(\d+)/.exec(loadavg)?.[1] ?? 0);
}

function meminfoBytes(meminfo: string, name: string): number {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(meminfo)?.[1];
  if (kib === undefined) throw new DsecError('unsupported', `/proc/meminfo has no ${name}`);
  return Number(kib) * KIB;
}

function pressureOf(resource: 'cpu' | 'memory' | 'io'): number | undefined {
  try {
    const text = readFileSync(`/proc/pressure/${resource}`, 'utf8');
    const share = /^some avg10=([\d.]+)/m.exec(text)?.[1];
    return share === undefined ? undefined : Number(share);
  } catch {
    // Built without PSI, or switched off.
    return undefined;
  }
}
