import { type KernelVersion, parseKernelVersion } from '../kernel-version.ts';

/**
 * Pure readers of the texts that the kernel and tools print. Malformed input gives `undefined` or leaves
 * rows out.
 */

export interface MountRow {
  readonly id: number;
  readonly parent: number;
  readonly root: string;
  readonly target: string;
  /** Attributes of the mount. */
  readonly options: readonly string[];
  readonly type: string;
  readonly source: string;
  /** Options of the file system. */
  readonly superOptions: readonly string[];
}

/** /proc/PID/mountinfo; escapes (`\040`) are undone. */
export function parseMountinfo(text: string): MountRow[] {
  const rows: MountRow[] = [];
  for (const line of text.split('\n')) {
    const [left = '', right] = line.split(' - ');
    const [id, parent, , root, target, options] = left.split(' ');
    const [type, source, superOptions] = (right ?? '').split(' ');
    if (target === undefined || root === undefined || type === undefined || right === undefined) {
      continue;
    }
    rows.push({
      id: Number(id),
      parent: Number(parent),
      root: unescapeOctal(root),
      target: unescapeOctal(target),
      options: (options ?? '').split(','),
      type,
      source: unescapeOctal(source ?? ''),
      superOptions: (superOptions ?? '').split(','),
    });
  }
  return rows;
}

function unescapeOctal(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, digits) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

export interface CgroupControllerRow {
  readonly name: string;
  /** 0: not in a v1 hierarchy. */
  readonly hierarchy: number;
  readonly enabled: boolean;
}

/** /proc/cgroups. */
export function parseProcCgroups(text: string): CgroupControllerRow[] {
  const rows: CgroupControllerRow[] = [];
  for (const line of text.split('\n')) {
    const [name, hierarchy, , enabled] = line.trim().split(/\s+/);
    if (name === undefined || name.startsWith('#') || enabled === undefined) continue;
    rows.push({ name, hierarchy: Number(hierarchy), enabled: enabled === '1' });
  }
  return rows;
}

/** The path after `0::` in /proc/PID/cgroup. */
export function parseUnifiedCgroup(text: string): string | undefined {
  return /^0::(\/.*)$/m.exec(text)?.[1];
}

/** A file of names between blanks, such as cgroup.controllers. */
export function parseWords(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

/** os-release: `KEY=value` or `KEY="value"`. */
export function parseOsRelease(text: string): Record<string, string> {
  const values: Record<string, string> = {};
  for (const line of text.split('\n')) {
    const match = /^([A-Z0-9_]+)=(.*)$/.exec(line.trim());
    if (match?.[1] === undefined || match[2] === undefined) continue;
    values[match[1]] = match[2].replace(/^(["'])(.*)\1$/, '$2').replace(/\\(["$`\\])/g, '$1');
  }
  return values;
}

/** `QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)` → 10, 0, 2. */
export function parseQemuVersion(line: string): KernelVersion | undefined {
  const match = /version (\d+\.\d+(?:\.\d+)?)/.exec(line);
  return match?.[1] === undefined ? undefined : parseKernelVersion(match[1]);
}

/** File systems that the running kernel knows, from /proc/filesystems. */
export function parseFilesystems(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.split('\t').at(-1) ?? '')
    .filter((name) => name !== '');
}

/** A value of /proc/meminfo in bytes. */
export function parseMeminfo(text: string, key: string): number | undefined {
  const match = new RegExp(`^${key}:\\s+(\\d+) kB$`, 'm').exec(text);
  return match === null ? undefined : Number(match[1]) * 1024;
}

export interface SwapRow {
  readonly name: string;
  readonly sizeBytes: number;
}

/** /proc/swaps. */
export function parseSwaps(text: string): SwapRow[] {
  const rows: SwapRow[] = [];
  for (const line of text.split('\n').slice(1)) {
    const [name, , kib] = line.split(/\s+/);
    if (name === undefined || name === '' || kib === undefined) continue;
    rows.push({ name: unescapeOctal(name), sizeBytes: Number(kib) * 1024 });
  }
  return rows;
}

/** Bits of the capabilities that DSec names; the numbers are the kernel's. */
export const CAPABILITY_BITS = {
  CHOWN: 0,
  DAC_OVERRIDE: 1,
  DAC_READ_SEARCH: 2,
  FOWNER: 3,
  FSETID: 4,
  KILL: 5,
  SETGID: 6,
  SETUID: 7,
  SETPCAP: 8,
  NET_ADMIN: 12,
  SYS_CHROOT: 18,
  SYS_PTRACE: 19,
  SYS_ADMIN: 21,
  SYS_RESOURCE: 24,
  MKNOD: 27,
  SETFCAP: 31,
  PERFMON: 38,
  BPF: 39,
} as const;

export type CapabilityName = keyof typeof CAPABILITY_BITS;

/** The named capabilities that are in force, from the CapEff line of /proc/PID/status. */
export function parseCapabilities(status: string): ReadonlySet<CapabilityName> | undefined {
  const hex = /^CapEff:\s+([0-9a-f]+)$/m.exec(status)?.[1];
  if (hex === undefined) return undefined;
  const bits = BigInt(`0x${hex}`);
  const names = Object.keys(CAPABILITY_BITS) as CapabilityName[];
  return new Set(names.filter((name) => (bits >> BigInt(CAPABILITY_BITS[name])) & 1n));
}

/** Where a module of this name lies, from the lists under /lib/modules/RELEASE. */
export function parseModuleState(
  name: string,
  lists: { readonly builtin: string; readonly dep: string },
): 'builtin' | 'module' | 'absent' {
  const file = new RegExp(`(^|/)${name}\\.ko`, 'm');
  if (file.test(lists.builtin)) return 'builtin';
  const modules = lists.dep.split('\n').map((line) => line.split(':')[0] ?? '');
  return modules.some((path) => file.test(path)) ? 'module' : 'absent';
}
