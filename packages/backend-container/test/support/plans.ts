/** A plan and a node that specs can be made of, without any of both being there. */
import type { SandboxPlan } from '@dsec/backend';
import { digestOfHex, MIB, type SandboxId } from '@dsec/std';
import type { CgroupLayout } from '../../src/cgroup-layout.ts';
import type { NodeFacts } from '../../src/node-facts.ts';
import { coverMounts } from '../../src/sandbox-mounts.ts';

export const layerId = (digit: string) => digestOfHex(digit.repeat(64));

export const pure: CgroupLayout = {
  unified: '/cg/dsec-e',
  controllers: {
    cpu: { version: 2, directory: '/cg/dsec-e' },
    memory: { version: 2, directory: '/cg/dsec-e' },
    pids: { version: 2, directory: '/cg/dsec-e' },
  },
  swapAccounting: true,
};

export const hybrid: CgroupLayout = {
  unified: '/cg/unified/dsec-e',
  controllers: {
    cpu: { version: 1, directory: '/cg/cpu/dsec-e' },
    memory: { version: 1, directory: '/cg/memory/dsec-e' },
    pids: { version: 1, directory: '/cg/pids/dsec-e' },
  },
  swapAccounting: true,
};

export const bare: CgroupLayout = { unified: '/cg/dsec-e', controllers: {}, swapAccounting: false };

export function nodeWith(changes: Partial<NodeFacts> = {}): NodeFacts {
  return {
    edgeId: 'e',
    cgroups: hybrid,
    processors: [0, 1, 2, 3],
    openFilesMax: 20_000,
    covers: coverMounts(() => true),
    hostProc: {
      cpuinfo: [0, 1, 2, 3].map((n) => `processor\t: ${n}\nmodel name\t: some\n`).join('\n'),
      bootTime: 'btime 1700000000',
    },
    seccomp: new Uint8Array(16),
    upperDrivers: ['tmpfs'],
    slotsMax: 32_768,
    ...changes,
  };
}

export function planWith(changes: Partial<SandboxPlan> = {}): SandboxPlan {
  return {
    key: { id: 'sb-s-e-aaaaaaaaaaaaaaaa' as SandboxId, generation: 2 },
    layers: [{ kind: 'base', layerId: layerId('a') }],
    limits: {
      ...{ cpuMillicores: 1500, memoryBytes: 256 * MIB, pidsMax: 100 },
      ...{ diskBytes: 32 * MIB, inodesMax: 5000, openFilesMax: 4096 },
    },
    ...{ slot: 3, hostname: 'box', isolationDomain: 'p' },
    ...{ requireProtections: [], allowDegraded: false },
    ...changes,
  };
}
