import { readFileSync } from 'node:fs';

/** Kinds of memory of the whole host, in KiB, as /proc/meminfo has them. */
export type MemoryByKind = Readonly<Record<string, number>>;

/** What a sandbox at rest can take. `MemAvailable` falls as the others grow. */
export const MEMORY_KINDS = {
  slab: 'Slab',
  slab_unreclaimable: 'SUnreclaim',
  anonymous: 'AnonPages',
  page_tables: 'PageTables',
  kernel_stacks: 'KernelStack',
  percpu: 'Percpu',
  tmpfs: 'Shmem',
} as const;

export function readMemory(): MemoryByKind {
  return parseMeminfo(readFileSync('/proc/meminfo', 'utf8'));
}

export function parseMeminfo(text: string): MemoryByKind {
  const rows = [...text.matchAll(/^(\S+):\s+(\d+) kB$/gm)];
  return Object.fromEntries(rows.map(([, name = '', kib]) => [name, Number(kib)]));
}
