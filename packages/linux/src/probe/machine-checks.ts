import { formatBytes, GIB } from '@dsec/std';
import { isAtLeast } from '../kernel-version.ts';
import { check, checkOutcome, type Distribution, distributionOf } from './check.ts';
import type { HostFacts } from './facts.ts';
import { LIMITS, type LimitRow, sysctlPath } from './limits.ts';
import { parseMeminfo, parseQemuVersion, parseSwaps } from './parse.ts';
import type { HostCheck } from './report.ts';

/** Virtual machines, memory, limits and the machine itself. Pure. */
export function machineChecks(facts: HostFacts): HostCheck[] {
  return [
    kvm(facts),
    qemu(facts),
    swap(facts),
    compressedSwap(facts),
    pressure(facts),
    openFiles(facts),
    ...LIMITS.map((row) => limit(facts, row)),
    cpus(facts),
    coreScheduling(facts),
    memory(facts),
    disk(facts),
  ];
}

function kvm(facts: HostFacts): HostCheck {
  const head = {
    id: 'vm.kvm',
    group: 'virtual machines',
    neededFor: 'virtual machines at full speed; without it QEMU emulates (TCG)',
  } as const;
  const remedy =
    'switch virtualization on in the firmware, or use a host with nested virtualization; ' +
    'then `modprobe kvm_intel` or `modprobe kvm_amd`';
  return checkOutcome(head, facts.kvm, remedy);
}

function qemu(facts: HostFacts): HostCheck {
  const head = {
    id: 'vm.qemu',
    group: 'virtual machines',
    neededFor: 'the microvm and fullvm backends; 8.2 for memory snapshots',
  } as const;
  const packageName = facts.arch === 'arm64' ? 'qemu-system-arm' : 'qemu-system-x86';
  const remedy = `\`apt-get install ${BACKPORTS[distributionOf(facts)]}${packageName}\``;
  if (facts.qemu === undefined) return check(head, 'missing', 'not found', remedy);
  const { path, versionLine } = facts.qemu;
  const version = parseQemuVersion(versionLine);
  if (version === undefined) return check(head, 'unknown', `${path}: ${versionLine}`, remedy);
  const found = `${path} ${version.major}.${version.minor}.${version.patch}`;
  if (isAtLeast(version, 8, 2)) return check(head, 'ok', found, '');
  return check(head, 'degraded', `${found}: no memory snapshots`, remedy);
}

/** Debian 12's own QEMU is 7.2; the others are new enough. */
const BACKPORTS: Readonly<Record<Distribution, string>> = {
  'debian-12': '-t bookworm-backports ',
  'debian-13': '',
  ubuntu: '',
  other: '',
};

function swap(facts: HostFacts): HostCheck {
  const head = {
    id: 'memory.swap',
    group: 'memory',
    neededFor: 'getting the memory of paused sandboxes back',
  } as const;
  const text = facts.files['/proc/swaps'];
  if (text === undefined) return check(head, 'missing', 'no swap in this kernel', 'CONFIG_SWAP=y');
  const total = parseSwaps(text).reduce((sum, row) => sum + row.sizeBytes, 0);
  if (total > 0) return check(head, 'ok', formatBytes(total), '');
  const file = '/var/lib/dsec/swap';
  const remedy =
    facts.modules.zram === 'module' || facts.modules.zram === 'builtin'
      ? '`modprobe zram && zramctl /dev/zram0 --size 8G && mkswap /dev/zram0 && swapon /dev/zram0`'
      : `\`fallocate -l 8G ${file} && chmod 600 ${file} && mkswap ${file} && swapon ${file}\``;
  return check(head, 'degraded', 'none: paused sandboxes keep their anonymous memory', remedy);
}

function compressedSwap(facts: HostFacts): HostCheck {
  const head = {
    id: 'memory.compressed-swap',
    group: 'memory',
    neededFor: 'paused memory kept in RAM at a third of its size',
  } as const;
  const zram = parseSwaps(facts.files['/proc/swaps'] ?? '').some((row) =>
    row.name.includes('zram'),
  );
  const zswap = facts.files['/sys/module/zswap/parameters/enabled']?.trim();
  if (zram) return check(head, 'ok', 'swap on zram', '');
  if (zswap === 'Y') return check(head, 'ok', 'zswap is on', '');
  if (zswap === 'N') {
    const remedy = '`echo Y > /sys/module/zswap/parameters/enabled`, with a swap device';
    return check(head, 'degraded', 'zswap is off, no zram device', remedy);
  }
  const known = facts.modules.zram === 'module' || facts.modules.zram === 'builtin';
  const remedy = known ? '`modprobe zram`' : 'a kernel with CONFIG_ZRAM=m or CONFIG_ZSWAP=y';
  return check(head, 'degraded', known ? 'no zram device' : 'neither zram nor zswap', remedy);
}

function pressure(facts: HostFacts): HostCheck {
  const head = {
    id: 'memory.pressure',
    group: 'memory',
    neededFor: 'admission by real pressure instead of by promises',
  } as const;
  const there = facts.files['/proc/pressure/memory'] !== undefined;
  const found = there ? '/proc/pressure' : 'no pressure stall information';
  return check(head, there ? 'ok' : 'degraded', found, 'CONFIG_PSI=y, and boot with psi=1');
}

const OPEN_FILES_WANTED = 1_048_576;

function openFiles(facts: HostFacts): HostCheck {
  const head = {
    id: 'limit.nofile',
    group: 'limits',
    neededFor: 'descriptors of the launcher and the edge',
  } as const;
  const remedy = 'LimitNOFILE=1048576 in the service, or `ulimit -Hn 1048576` before the start';
  if (facts.openFiles === undefined) return check(head, 'unknown', 'not readable', remedy);
  const { hard } = facts.openFiles;
  return check(head, hard >= OPEN_FILES_WANTED ? 'ok' : 'degraded', `hard limit ${hard}`, remedy);
}

function limit(facts: HostFacts, row: LimitRow): HostCheck {
  const head = { id: `limit.${row.sysctl}`, group: 'limits', neededFor: row.neededFor } as const;
  const text = facts.files[sysctlPath(row.sysctl)]?.trim();
  if (text === undefined) {
    return check(head, 'unknown', 'no such setting here', `see ${sysctlPath(row.sysctl)}`);
  }
  const value = Number(text);
  const remedy = `\`sysctl -w ${row.sysctl}=${row.wanted}\`, and in /etc/sysctl.d/ to keep it`;
  if (value >= row.wanted) return check(head, 'ok', text, '');
  return check(
    head,
    value === 0 ? 'missing' : 'degraded',
    `${text}, less than ${row.wanted}`,
    remedy,
  );
}

function cpus(facts: HostFacts): HostCheck {
  const head = { id: 'machine.cpus', group: 'machine', neededFor: 'work beside the edge' } as const;
  return check(head, facts.cpus >= 2 ? 'ok' : 'degraded', String(facts.cpus), 'two CPUs or more');
}

function coreScheduling(facts: HostFacts): HostCheck {
  const head = {
    id: 'machine.core-scheduling',
    group: 'machine',
    neededFor: 'keeping sandboxes that do not trust each other off one core',
  } as const;
  if (facts.files['/sys/devices/system/cpu/smt/active']?.trim() === '0') {
    return check(head, 'ok', 'not needed: one thread per core', '');
  }
  const remedy = 'a kernel with CONFIG_SCHED_CORE=y, or boot with nosmt';
  return checkOutcome(head, facts.coreScheduling, remedy, 'degraded');
}

const MEMORY_BYTES_WANTED = 4 * GIB;

function memory(facts: HostFacts): HostCheck {
  const head = { id: 'machine.memory', group: 'machine', neededFor: 'sandboxes' } as const;
  const text = facts.files['/proc/meminfo'] ?? '';
  const total = parseMeminfo(text, 'MemTotal');
  const available = parseMeminfo(text, 'MemAvailable');
  if (total === undefined || available === undefined) {
    return check(head, 'unknown', '/proc/meminfo tells nothing', 'mount procfs at /proc');
  }
  const found = `${formatBytes(total)}, ${formatBytes(available)} available`;
  const enough = total >= MEMORY_BYTES_WANTED * 0.9;
  const remedy = `${formatBytes(MEMORY_BYTES_WANTED)} of memory or more`;
  return check(head, enough ? 'ok' : 'degraded', found, remedy);
}

const DISK_BYTES_WANTED = 20 * GIB;
/** Overlayfs refuses an upper on these, or it would not outlive a reboot. */
const UNFIT_FOR_UPPERS: ReadonlySet<string> = new Set([
  'overlay',
  'nfs',
  'ceph',
  'fuse',
  '9p',
  'smb',
]);

function disk(facts: HostFacts): HostCheck {
  const head = {
    id: 'machine.disk',
    group: 'machine',
    neededFor: 'layers, caches and what sandboxes write',
  } as const;
  if (facts.disk === undefined) return check(head, 'unknown', 'not readable', 'df');
  const { path, fileSystem, freeBytes } = facts.disk;
  const found = `${formatBytes(freeBytes)} free on ${fileSystem} at ${path}`;
  if (UNFIT_FOR_UPPERS.has(fileSystem)) {
    const remedy = 'put the state directory on a local ext4, xfs or btrfs';
    return check(head, 'degraded', `${found}: no place for what sandboxes write`, remedy);
  }
  const remedy = `free ${formatBytes(DISK_BYTES_WANTED)} or choose another state directory`;
  return check(head, freeBytes >= DISK_BYTES_WANTED ? 'ok' : 'degraded', found, remedy);
}
