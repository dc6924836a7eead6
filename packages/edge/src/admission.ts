/**
 * Whether a node takes another sandbox. Requests are elastic, so what counts is the real pressure on the
 * host; only slots, which cannot be taken back, are counted as they are given (THREATS C1, C2). Limits on
 * processes are ceilings too: what all sandboxes together can have of the host is bounded by the launcher.
 * A refusal names the limit, so that placement tries elsewhere.
 */
import type { EdgeState } from '@dsec/protocol';
import { type Clock, DsecError, type SandboxId } from '@dsec/std';
import type { HostProbe, HostSample } from './host-probes.ts';

export interface AdmissionLimits {
  readonly slotsMax: number;
  /** Of the processes that the host can have, used by anybody. The launcher gives sandboxes as much. */
  readonly pidsPctMax: number;
  /** Process ids that each sandbox shall find beside those in use: its agent and a command need them. */
  readonly pidsPerSandbox: number;
  /** Of the host's memory, kept available. */
  readonly memoryFreePctMin: number;
  /** What a sandbox that starts is taken to need until the host shows what it does need. */
  readonly memoryPerStartBytes: number;
  /** Of the disk, kept free. */
  readonly diskFreePctMin: number;
  readonly cpuPressurePctMax: number;
  readonly memoryPressurePctMax: number;
  /** Memory pressure counts while less than this part of the host's memory is available. */
  readonly memoryPressureBelowPct: number;
  readonly ioPressurePctMax: number;
}

/**
 * Processor time is shared by weight, and a node where some task always waits for it is only busy: its
 * pressure refuses nothing unless the operator wants it. Waits for memory on a host that has plenty are those
 * of sandboxes at their own limits, and a bomb in one of them must not close the node to others.
 */
export const ADMISSION_DEFAULTS: Omit<AdmissionLimits, 'slotsMax'> = {
  pidsPctMax: 80,
  pidsPerSandbox: 8,
  memoryFreePctMin: 5,
  memoryPerStartBytes: 16 * 2 ** 20,
  diskFreePctMin: 10,
  cpuPressurePctMax: 100,
  memoryPressurePctMax: 40,
  memoryPressureBelowPct: 25,
  ioPressurePctMax: 95,
};

export interface Admission {
  /** Throws `overloaded`; its details name the `limit`, what is `used` and the `max`. */
  check(): void;
  /** From its intent on. */
  add(id: SandboxId): void;
  /** It runs: what it needs shows in what the host has left. */
  started(id: SandboxId): void;
  /** Nothing of it is left. */
  remove(id: SandboxId): void;
  load(): EdgeState['load'];
}

/** A sample of the host is good for this long. */
const SAMPLE_MS = 250;

interface Refusal {
  readonly limit: string;
  readonly used: number;
  readonly max: number;
}

export function createAdmission(
  limits: AdmissionLimits,
  probe: HostProbe,
  clock: Clock,
): Admission {
  const held = new Set<SandboxId>();
  const starting = new Set<SandboxId>();
  let sample: HostSample | undefined;
  let takenMs = 0;

  const host = (): HostSample => {
    const nowMs = clock.monotonicMs();
    if (sample === undefined || nowMs - takenMs >= SAMPLE_MS) [sample, takenMs] = [probe(), nowMs];
    return sample;
  };
  const pidsMax = ({ pidMax }: HostSample) => Math.floor((pidMax * limits.pidsPctMax) / 100);
  const refusal = (): Refusal | undefined => {
    const now = host();
    const memoryMin = (now.memoryTotalBytes * limits.memoryFreePctMin) / 100;
    const memoryAsked = (starting.size + 1) * limits.memoryPerStartBytes;
    const pidsKept = (held.size + 1) * limits.pidsPerSandbox;
    const isShort =
      now.memoryAvailableBytes < (now.memoryTotalBytes * limits.memoryPressureBelowPct) / 100;
    const diskMin = (now.diskTotalBytes * limits.diskFreePctMin) / 100;
    const rows: Refusal[] = [
      { limit: 'slots', used: held.size + 1, max: limits.slotsMax },
      { limit: 'pids', used: now.pidsUsed + pidsKept, max: pidsMax(now) },
      {
        limit: 'memory',
        used: memoryAsked,
        max: Math.max(0, now.memoryAvailableBytes - memoryMin),
      },
      { limit: 'disk', used: diskMin, max: now.diskAvailableBytes },
      { limit: 'cpu-pressure', used: now.cpuPressurePct ?? 0, max: limits.cpuPressurePctMax },
      {
        limit: 'memory-pressure',
        used: isShort ? (now.memoryPressurePct ?? 0) : 0,
        max: limits.memoryPressurePctMax,
      },
      { limit: 'io-pressure', used: now.ioPressurePct ?? 0, max: limits.ioPressurePctMax },
    ];
    return rows.find(({ used, max }) => used > max);
  };

  return {
    check() {
      const refused = refusal();
      if (refused === undefined) return;
      throw new DsecError('overloaded', `the node takes no more: ${refused.limit}`, {
        details: { ...refused },
      });
    },
    add(id) {
      held.add(id);
      starting.add(id);
    },
    started: (id) => {
      starting.delete(id);
    },
    remove(id) {
      held.delete(id);
      starting.delete(id);
    },
    load: () => loadOf(host(), refusal(), pidsMax(host())),
  };
}

function loadOf(now: HostSample, refused: Refusal | undefined, pidsMax: number): EdgeState['load'] {
  const { cpuPressurePct, memoryPressurePct, ioPressurePct } = now;
  return {
    admitting: refused === undefined,
    ...(refused === undefined
      ? {}
      : { refusal: `${refused.limit}: ${Math.round(refused.used)} of ${Math.round(refused.max)}` }),
    cpuCount: now.cpuCount,
    memoryTotalBytes: now.memoryTotalBytes,
    memoryAvailableBytes: now.memoryAvailableBytes,
    diskAvailableBytes: now.diskAvailableBytes,
    pidsAvailable: Math.max(0, pidsMax - now.pidsUsed),
    ...(cpuPressurePct === undefined ? {} : { cpuPressurePct }),
    ...(memoryPressurePct === undefined ? {} : { memoryPressurePct }),
    ...(ioPressurePct === undefined ? {} : { ioPressurePct }),
  };
}
