import { existsSync, readFileSync } from 'node:fs';
import type { MountFields } from '@dsec/protocol';
import { type CgroupLayout, probeCgroups } from './cgroup-layout.ts';
import { slotsBelow } from './id-range.ts';
import type { HostProc } from './proc-views.ts';
import { coverMounts } from './sandbox-mounts.ts';
import { compileSeccomp } from './seccomp-program.ts';
import type { UpperDriver } from './upper-choice.ts';

/** All that a spec depends on beside the plan: found out once, when the backend is opened. */
export interface NodeFacts {
  readonly edgeId: string;
  readonly cgroups: CgroupLayout;
  /** Numbers of the processors that may be used. */
  readonly processors: readonly number[];
  /** Of an open file's number, in any process. */
  readonly openFilesMax: number;
  /** What covers parts of /proc and /sys of this kernel: `coverMounts`. */
  readonly covers: readonly MountFields[];
  readonly hostProc: HostProc;
  /** The program that filters system calls. */
  readonly seccomp: Uint8Array;
  readonly upperDrivers: readonly UpperDriver[];
  readonly slotsMax: number;
  /** The platform's tools, below the state root; absent: this node has none. */
  readonly platformTools?: string | undefined;
}

/** Finds out what specs depend on. `unsupported` where no sandbox can run at all. */
export function probeNode(
  edgeId: string,
  upperDrivers: readonly UpperDriver[] = probeUpperDrivers(),
): NodeFacts {
  const stat = readText('/proc/stat') ?? '';
  return {
    edgeId,
    cgroups: probeCgroups(edgeId),
    processors: allowedProcessors(readText('/proc/self/status') ?? ''),
    openFilesMax: hardOpenFiles(readText('/proc/self/limits') ?? ''),
    covers: coverMounts((path) => existsSync(path)),
    hostProc: {
      cpuinfo: readText('/proc/cpuinfo') ?? '',
      bootTime: /^btime \d+$/m.exec(stat)?.[0] ?? 'btime 0',
    },
    seccomp: compileSeccomp(),
    upperDrivers,
    slotsMax: Math.min(...['/etc/subuid', '/etc/subgid'].map((p) => slotsBelow(readText(p) ?? ''))),
  };
}

/**
 * What the launcher can make on any disk. Not btrfs, whose subvolumes have no limit on inodes: an operator
 * names it, and a caller allows a degraded sandbox.
 */
function probeUpperDrivers(): readonly UpperDriver[] {
  const hasExt4 = /\text4$/m.test(readText('/proc/filesystems') ?? '');
  const hasLoop = existsSync('/dev/loop-control');
  const hasTool = ['/usr/sbin/mke2fs', '/sbin/mke2fs'].some((path) => existsSync(path));
  return hasExt4 && hasLoop && hasTool ? ['tmpfs', 'image'] : ['tmpfs'];
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** From `Cpus_allowed_list: 0-3,8` of /proc/PID/status. */
export function allowedProcessors(status: string): readonly number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? '0';
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, offset) => first + offset);
  });
}

/** The hard limit of this process, which is also the launcher's; as many as the kernel allows without one. */
export function hardOpenFiles(limits: string): number {
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(limits)?.[1] ?? '';
  if (/^\d+$/.test(hard)) return Number(hard);
  return Number(readText('/proc/sys/fs/nr_open') ?? 1_048_576);
}
