import type { SandboxKey, SandboxPlan } from '@dsec/backend';
import { keepEncoded, NAMESPACE_BITS, SPAWN_ITEMS, type SpawnFields } from '@dsec/protocol';
import { identityOf, rangeBase, rangeLast } from './id-range.ts';
import { cgroupsOf } from './limit-settings.ts';
import { mountKeyOf } from './mount-key.ts';
import type { NodeFacts } from './node-facts.ts';
import { policyMounts } from './policy-parts.ts';
import { bootIdOf, type ProcView, processorMask } from './proc-views.ts';
import { linkOf } from './router.ts';
import { boundFile, sandboxMounts } from './sandbox-mounts.ts';
import { partsOf, VIEWS_DIRECTORY } from './spec-parts.ts';
import { toolMounts } from './tool-mounts.ts';
import type { UpperChoice } from './upper-choice.ts';

/** `<name>-<generation>`: what everything of a sandbox is called. */
export const objectId = ({ id, generation }: SandboxKey): string => `${id}-${generation}`;
/** Below the state root. */
export const socketPath = (key: SandboxKey): string => `run/sb/${objectId(key)}.sock`;

/** Files that must be there, below `VIEWS_DIRECTORY`, when a sandbox is made. */
export interface SandboxViews {
  readonly shared: readonly ProcView[];
  /** For this sandbox alone. */
  readonly own: ProcView;
}

export function viewsOf(plan: SandboxPlan, node: NodeFacts): SandboxViews {
  const id = objectId(plan.key);
  return {
    shared: partsOf(plan.limits, node).views,
    own: {
      name: `boot-${id}`,
      target: 'sys/kernel/random/boot_id',
      content: () => bootIdOf(node.edgeId, id),
    },
  };
}

/**
 * CHOWN alone, so that a session can open its own pipes and terminal anew; over the ids of its range. What
 * sessions can do comes with their user namespace.
 */
const AGENT_CAPABILITIES = 2 ** 0;
const NAMESPACES = Object.values(NAMESPACE_BITS).reduce((all, bit) => all | bit, 0);
const STANDARD_DESCRIPTORS = [0, 1, 2].map((number) =>
  keepEncoded(SPAWN_ITEMS.descriptor, { number, kind: 'null' }),
);
/** Sandboxes go before anything of the node when it runs out of memory. */
const OOM_SCORE_ADJ = 500;

/** The spec of a sandbox: a pure function of its plan, the node and the choice of its upper. */
export function spawnSpecOf(plan: SandboxPlan, node: NodeFacts, upper: UpperChoice): SpawnFields {
  const { key, slot, limits } = plan;
  const id = objectId(key);
  const parts = partsOf(limits, node);
  const { own } = viewsOf(plan, node);
  const ownFile = { source: `${VIEWS_DIRECTORY}/${own.name}`, target: `/proc/${own.target}` };
  return {
    name: key.id,
    generation: key.generation,
    kind: 'sandbox',
    namespaces: NAMESPACES,
    ...identityOf(slot),
    hostname: plan.hostname,
    root: {
      layers: [...plan.layers].reverse().map((layer) => ({ layerId: mountKeyOf(plan, layer) })),
      upper: {
        ...{ driver: upper.driver, sizeBytes: limits.diskBytes, inodesMax: limits.inodesMax },
        ...(upper.driver === 'btrfs' ? { inodesUnlimited: true } : {}),
      },
      nosuid: true,
    },
    mounts: [
      ...sandboxMounts(slot, parts.shm, node.covers, [...parts.viewMounts, boundFile(ownFile)]),
      ...toolMounts(plan, node.platformTools),
      ...(plan.policy === undefined ? [] : policyMounts(plan.policy)),
    ],
    sysctls: [
      // The network namespace belongs to the host's user namespace: no session could be privileged.
      { name: 'net.ipv4.ip_unprivileged_port_start', value: '0' },
      { name: 'net.ipv4.ping_group_range', value: `${rangeBase(slot)} ${rangeLast(slot)}` },
    ],
    cgroups: cgroupsOf(parts.cgroups, id, slot),
    rlimits: parts.rlimits,
    capabilities: AGENT_CAPABILITIES,
    noNewPrivileges: true,
    seccomp: node.seccomp,
    env: [],
    descriptors: [
      ...STANDARD_DESCRIPTORS,
      { number: 3, kind: 'listener', name: Buffer.from(socketPath(key)) },
    ],
    oomScoreAdj: OOM_SCORE_ADJ,
    ...linkOf(plan.network),
    cpus: processorMask(slot, parts.processors, node.processors),
  };
}
