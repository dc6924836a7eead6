/**
 * Files of /proc that tell of the host, as a sandbox sees them: by its limits. They are files of the
 * node, shared by all sandboxes with the same limits and bound read-only over the originals. Nothing
 * follows what a sandbox uses; `sysinfo(2)` and `/proc/uptime`, whose first number every process can ask
 * the kernel for anyway, still tell of the host.
 */
import { hash } from 'node:crypto';
import type { SandboxLimits } from '@dsec/protocol';
import { KIB } from '@dsec/std';

export interface ProcView {
  /** Below the directory of views. The same name means the same content. */
  readonly name: string;
  /** Below /proc. */
  readonly target: string;
  content(): string;
}

/** What of the host's own files goes into the views. */
export interface HostProc {
  readonly cpuinfo: string;
  /** The line `btime …` of /proc/stat. */
  readonly bootTime: string;
}

const MILLICORES = 1000;

/** Whole processors that a limit amounts to. */
export const processorsOf = (cpuMillicores: number, available: number): number =>
  Math.max(1, Math.min(available, Math.ceil(cpuMillicores / MILLICORES)));

/**
 * Which processors a sandbox may run on: as many as its limit amounts to, spread by its slot so that
 * small sandboxes do not all share the first.
 */
export function processorMask(slot: number, count: number, online: readonly number[]): Uint8Array {
  const last = Math.max(...online);
  const mask = new Uint8Array(Math.floor(last / 8) + 1);
  for (let i = 0; i < count; i += 1) {
    const processor = online[(slot * count + i) % online.length] ?? 0;
    const byte = Math.floor(processor / 8);
    mask[byte] = (mask[byte] ?? 0) | (1 << (processor % 8));
  }
  return mask;
}

export function procViews(
  limits: Pick<Required<SandboxLimits>, 'memoryBytes' | 'cpuMillicores'>,
  processorsOnline: number,
  host: HostProc,
): readonly ProcView[] {
  const processors = processorsOf(limits.cpuMillicores, processorsOnline);
  const { memoryBytes } = limits;
  return [
    {
      name: `meminfo-${memoryBytes}`,
      target: 'meminfo',
      content: () => meminfo(Math.floor(memoryBytes / KIB)),
    },
    { name: `cpuinfo-${processors}`, target: 'cpuinfo', content: () => cpuinfo(processors, host) },
    { name: `stat-${processors}`, target: 'stat', content: () => stat(processors, host) },
    { name: 'loadavg', target: 'loadavg', content: () => '0.00 0.00 0.00 1/1 1\n' },
  ];
}

function meminfo(totalKib: number): string {
  const rows = {
    MemTotal: totalKib,
    MemFree: totalKib,
    MemAvailable: totalKib,
    Buffers: 0,
    Cached: 0,
    SwapCached: 0,
    Active: 0,
    Inactive: 0,
    SwapTotal: 0,
    SwapFree: 0,
    Shmem: 0,
    Slab: 0,
  };
  return Object.entries(rows)
    .map(([name, kib]) => `${`${name}:`.padEnd(16)}${`${kib}`.padStart(8)} kB\n`)
    .join('');
}

function cpuinfo(processors: number, { cpuinfo: text }: HostProc): string {
  const blocks = text.split('\n\n').filter((block) => block.trim() !== '');
  return blocks
    .slice(0, processors)
    .map((block) => `${block.trimEnd()}\n\n`)
    .join('');
}

function stat(processors: number, { bootTime }: HostProc): string {
  const zeros = Array.from({ length: 10 }, () => '0').join(' ');
  const each = Array.from({ length: processors }, (_, number) => `cpu${number} ${zeros}\n`);
  return [
    `cpu  ${zeros}\n`,
    ...each,
    `intr 0\nctxt 0\n${bootTime}\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n`,
  ].join('');
}

/** A boot id of the sandbox's own, in the kernel's form: the same for all of one life. */
export function bootIdOf(edgeId: string, id: string): string {
  const digest = hash('sha256', `dsec-boot\0${edgeId}\0${id}`, 'hex');
  const bytes = Buffer.from(digest.slice(0, 32), 'hex');
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  const parts = [[0, 8], [8, 12], [12, 16], [16, 20], [20]];
  return `${parts.map(([from, to]) => hex.slice(from, to)).join('-')}\n`;
}
