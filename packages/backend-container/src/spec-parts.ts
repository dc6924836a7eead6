/** What is the same in the specs of all sandboxes with the same limits: made and encoded once. */
import {
  keepEncoded,
  type MountFields,
  type SandboxLimits,
  SPAWN_ITEMS,
  type SpawnFields,
} from '@dsec/protocol';
import { KIB } from '@dsec/std';
import { type CgroupSettings, cgroupSettings } from './limit-settings.ts';
import type { NodeFacts } from './node-facts.ts';
import { type ProcView, processorsOf, procViews } from './proc-views.ts';
import { sharedFile, shmMount } from './sandbox-mounts.ts';

export interface SpecParts {
  /** How many a sandbox may run on. */
  readonly processors: number;
  readonly views: readonly ProcView[];
  /** Of the views, in the same order. */
  readonly viewMounts: readonly MountFields[];
  readonly shm: MountFields;
  readonly cgroups: CgroupSettings;
  readonly rlimits: SpawnFields['rlimits'];
}

export const VIEWS_DIRECTORY = 'run/views';

/** Of the limits that were used first, the oldest are made anew. */
const KEPT_MAX = 64;
const keptOf = new WeakMap<NodeFacts, Map<string, SpecParts>>();

export function partsOf(limits: Required<SandboxLimits>, node: NodeFacts): SpecParts {
  const { cpuMillicores, memoryBytes, pidsMax, openFilesMax } = limits;
  const key = `${cpuMillicores} ${memoryBytes} ${pidsMax} ${openFilesMax}`;
  const kept = keptOf.get(node) ?? new Map<string, SpecParts>();
  keptOf.set(node, kept);
  const known = kept.get(key);
  if (known !== undefined) return known;
  const parts = makeParts(limits, node);
  kept.set(key, parts);
  const [oldest] = kept.keys();
  if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
  return parts;
}

function makeParts(limits: Required<SandboxLimits>, node: NodeFacts): SpecParts {
  const views = procViews(limits, node.processors.length, node.hostProc);
  const { life, pooled } = cgroupSettings(node.cgroups, limits);
  return {
    processors: processorsOf(limits.cpuMillicores, node.processors.length),
    views,
    viewMounts: views.map(({ name, target }) =>
      sharedFile({ source: `${VIEWS_DIRECTORY}/${name}`, target: `/proc/${target}` }),
    ),
    shm: shmMount(limits.memoryBytes),
    cgroups: {
      life: keepSettings(life),
      pooled: pooled.map(({ hierarchy, settings }) => ({
        hierarchy,
        settings: keepSettings(settings),
      })),
    },
    rlimits: rlimitsOf(limits, node.openFilesMax).map((rlimit) =>
      keepEncoded(SPAWN_ITEMS.rlimit, rlimit),
    ),
  };
}

const keepSettings = (settings: CgroupSettings['life']) =>
  settings.map((setting) => keepEncoded(SPAWN_ITEMS.setting, setting));

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
