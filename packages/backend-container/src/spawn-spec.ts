import type { SandboxKey, SandboxPlan } from '@dsec/backend';
import {
  type MountFields,
  NAMESPACE_BITS,
  type SandboxLimits,
  type SpawnFields,
} from '@dsec/protocol';
import { KIB } from '@dsec/std';
import type { CgroupLayout } from './cgroup-layout.ts';
import { identityOf, rangeBase, rangeLast } from './id-range.ts';
import { cgroupsOf } from './limit-settings.ts';
import {
  bootIdOf,
  type HostProc,
  type ProcView,
  processorMask,
  processorsOf,
  procViews,
} from './proc-views.ts';
import { sandboxMounts } from './sandbox-mounts.ts';
import type { UpperChoice, UpperDriver } from './upper-choice.ts';

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
}

/** `<name>-<generation>`: what everything of a sandbox is called. */
export const objectId = ({ id, generation }: SandboxKey): string => `${id}-${generation}`;
/** Below the state root. */
export const socketPath = (key: SandboxKey): string => `run/sb/${objectId(key)}.sock`;
export const VIEWS_DIRECTORY = 'run/views';

/** Files that must be there, below `VIEWS_DIRECTORY`, when a sandbox is made. */
export interface SandboxViews {
  readonly shared: readonly ProcView[];
  /** For this sandbox alone. */
  readonly own: ProcView;
}

export function viewsOf(plan: SandboxPlan, node: NodeFacts): SandboxViews {
  const id = objectId(plan.key);
  return {
    shared: procViews(plan.limits, node.processors.length, node.hostProc),
    own: {
      name: `boot-${id}`,
      target: 'sys/kernel/random/boot_id',
      content: () => bootIdOf(node.edgeId, id),
    },
  };
}

/** Numbers of Linux's resource limits. */
const RLIMIT = {
  core: 4,
  processes: 6,
  openFiles: 7,
  lockedMemory: 8,
  pendingSignals: 11,
  messageQueues: 12,
  nice: 13,
  realtimePriority: 14,
};
/** PID 1 itself needs these, however few a sandbox asks for. */
const AGENT_FILES_MIN = 1024;
const LOCKED_MEMORY_BYTES = 64 * KIB;
const MESSAGE_QUEUE_BYTES = 819_200;
const PENDING_SIGNALS = 4096;
/**
 * CHOWN alone, so that a session can open its own pipes and terminal anew; over the ids of its range. What
 * sessions can do comes with their user namespace.
 */
const AGENT_CAPABILITIES = 2 ** 0;
/** Sandboxes go before anything of the node when it runs out of memory. */
const OOM_SCORE_ADJ = 500;

/** The spec of a sandbox: a pure function of its plan, the node and the choice of its upper. */
export function spawnSpecOf(plan: SandboxPlan, node: NodeFacts, upper: UpperChoice): SpawnFields {
  const { key, slot, limits } = plan;
  const id = objectId(key);
  const { shared, own } = viewsOf(plan, node);
  const files = [...shared, own].map(({ name, target }) => ({
    source: `${VIEWS_DIRECTORY}/${name}`,
    target: `/proc/${target}`,
  }));
  const processors = processorsOf(limits.cpuMillicores, node.processors.length);
  return {
    name: key.id,
    generation: key.generation,
    kind: 'sandbox',
    namespaces: Object.values(NAMESPACE_BITS).reduce((all, bit) => all | bit, 0),
    ...identityOf(slot),
    hostname: plan.hostname,
    root: {
      layers: [...plan.layers].reverse().map(({ layerId }) => ({ layerId })),
      upper: { driver: upper.driver, sizeBytes: limits.diskBytes, inodesMax: limits.inodesMax },
      nosuid: true,
    },
    mounts: sandboxMounts(slot, limits.memoryBytes, node.covers, files),
    sysctls: [
      // The network namespace belongs to the host's user namespace: no session could be privileged.
      { name: 'net.ipv4.ip_unprivileged_port_start', value: '0' },
      { name: 'net.ipv4.ping_group_range', value: `${rangeBase(slot)} ${rangeLast(slot)}` },
    ],
    cgroups: cgroupsOf(node.cgroups, id, slot, limits),
    rlimits: rlimitsOf(limits, node.openFilesMax),
    capabilities: AGENT_CAPABILITIES,
    noNewPrivileges: true,
    seccomp: node.seccomp,
    env: [],
    descriptors: [
      { number: 0, kind: 'null' },
      { number: 1, kind: 'null' },
      { number: 2, kind: 'null' },
      { number: 3, kind: 'listener', name: Buffer.from(socketPath(key)) },
    ],
    oomScoreAdj: OOM_SCORE_ADJ,
    cpus: processorMask(slot, processors, node.processors),
  };
}

function rlimitsOf(limits: Required<SandboxLimits>, nodeFilesMax: number): SpawnFields['rlimits'] {
  const both = (resource: number, value: number) => ({ resource, soft: value, hard: value });
  const files = Math.min(limits.openFilesMax, nodeFilesMax);
  return [
    both(RLIMIT.core, 0),
    both(RLIMIT.processes, limits.pidsMax),
    {
      resource: RLIMIT.openFiles,
      soft: files,
      hard: Math.min(Math.max(files, AGENT_FILES_MIN), nodeFilesMax),
    },
    both(RLIMIT.lockedMemory, LOCKED_MEMORY_BYTES),
    both(RLIMIT.pendingSignals, PENDING_SIGNALS),
    both(RLIMIT.messageQueues, MESSAGE_QUEUE_BYTES),
    both(RLIMIT.nice, 0),
    both(RLIMIT.realtimePriority, 0),
  ];
}
