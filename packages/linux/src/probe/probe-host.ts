import { cgroupChecks } from './cgroup-checks.ts';
import type { HostFacts } from './facts.ts';
import { fileSystemChecks } from './file-system-checks.ts';
import { gatherFacts } from './gather.ts';
import { kernelChecks } from './kernel-checks.ts';
import { machineChecks } from './machine-checks.ts';
import { parseMeminfo, parseOsRelease } from './parse.ts';
import { type HostReport, PROBED_BACKENDS, type ProbedBackend, type Verdict } from './report.ts';
import { securityChecks } from './security-checks.ts';
import { verdictOf } from './verdicts.ts';

export interface ProbeOptions {
  /** A small EROFS image to mount; without one the EROFS checks say `unknown`. */
  readonly erofsImage?: Uint8Array;
  /** Where sandboxes and layers will lie; its disk is looked at. It need not exist. */
  readonly stateDirectory: string;
  /** Limit of each trial, default 20 s. */
  readonly probeTimeoutMs?: number;
  /** Limit of the KVM guest once its process has started, default 5 s; it needs milliseconds. */
  readonly kvmTimeoutMs?: number;
}

/**
 * Looks at this host and says what DSec can do on it. Never rejects; takes about a second, and at worst the
 * limits. Leaves nothing behind: mounts are tried in a child's own mount namespace, one cgroup is made and
 * removed.
 */
export async function probeHost(options: ProbeOptions): Promise<HostReport> {
  const facts = await gatherFacts({
    erofsImage: options.erofsImage,
    stateDirectory: options.stateDirectory,
    probeTimeoutMs: options.probeTimeoutMs ?? 20_000,
    kvmTimeoutMs: options.kvmTimeoutMs ?? 5_000,
  });
  return reportOf(facts);
}

/** Judges the facts of a host. Pure. */
export function reportOf(facts: HostFacts): HostReport {
  const checks = [
    ...kernelChecks(facts),
    ...cgroupChecks(facts),
    ...fileSystemChecks(facts),
    ...securityChecks(facts),
    ...machineChecks(facts),
  ];
  const verdicts = PROBED_BACKENDS.map((backend) => [backend, verdictOf(backend, checks)]);
  const osRelease = parseOsRelease(facts.files['/etc/os-release'] ?? '');
  return {
    version: 1,
    takenAt: facts.takenAt,
    host: {
      os: osRelease.PRETTY_NAME ?? 'unknown distribution',
      kernel: facts.kernelRelease,
      architecture: { x64: 'x86_64', arm64: 'aarch64' }[facts.arch] ?? facts.arch,
      cpus: facts.cpus,
      memoryBytes: parseMeminfo(facts.files['/proc/meminfo'] ?? '', 'MemTotal') ?? 0,
      uid: facts.uid,
    },
    checks,
    verdicts: Object.fromEntries(verdicts) as Record<ProbedBackend, Verdict>,
  };
}
