import { DAY_MS, GIB, MIB, MINUTE_MS } from '@dsec/std';
import type { HostSample } from './host-probes.ts';
import type { NodePolicy } from './settle-spec.ts';

/**
 * What a node gives when its operator has said nothing. The writable layer fits the memory limit, so that a
 * full one is `ENOSPC` and never the end of the sandbox (THREATS C2).
 */
export function defaultNodePolicy(host: HostSample): NodePolicy {
  return {
    limits: {
      cpuMillicores: Math.min(2000, host.cpuCount * 1000),
      memoryBytes: GIB,
      pidsMax: 512,
      diskBytes: 512 * MIB,
      inodesMax: 262_144,
      openFilesMax: 16_384,
    },
    limitsMax: {
      cpuMillicores: host.cpuCount * 1000,
      memoryBytes: host.memoryTotalBytes,
      pidsMax: 32_768,
      diskBytes: Math.max(host.diskTotalBytes, host.memoryTotalBytes),
      inodesMax: 2 ** 32,
      openFilesMax: 1_048_576,
    },
    ttl: { idleMs: 30 * MINUTE_MS, lifetimeMs: DAY_MS },
  };
}
