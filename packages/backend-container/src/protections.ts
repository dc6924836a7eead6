import type { Protection } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import type { Controller } from './cgroup-layout.ts';
import type { NodeFacts } from './node-facts.ts';
import type { UpperChoice } from './upper-choice.ts';

const enforced = (name: string, detail?: string): Protection => ({
  name,
  state: 'enforced',
  ...(detail !== undefined && { detail }),
});

/** The isolation domain that is the whole node. */
export const NODE_DOMAIN = 'node';

/** What the launcher refuses to do without, whatever the node: a sandbox that runs has all of these. */
const ALWAYS: readonly Protection[] = [
  enforced('namespaces', 'mount, pid, uts, ipc, net, cgroup and user, all of its own'),
  enforced('id-range', '65,536 user and group ids that nobody else on the node has'),
  enforced('agent-guard', 'the agent has an id that sessions cannot have, signal or trace'),
  enforced('seccomp', 'an allow list of system calls'),
  enforced('capabilities', "docker's without MKNOD, NET_RAW, SYS_CHROOT and AUDIT_WRITE"),
  enforced('no-new-privileges', 'set-user-id programs give nothing'),
  enforced('proc-mask', 'what of /proc and /sys tells of the host or acts on it is covered'),
];

/**
 * What a sandbox of this node would have in force, with this writable layer. The list is the backend's
 * own: each is there whatever its state.
 */
export function protectionsOf(
  node: NodeFacts,
  upper: UpperChoice,
  isLinked = false,
  isolationDomain = '',
): readonly Protection[] {
  return [
    ...ALWAYS,
    networkIsolation(isLinked),
    controllerLimit(node, 'cpu', 'cpu-limit'),
    memoryLimit(node),
    controllerLimit(node, 'pids', 'pids-limit'),
    diskLimit(upper),
    enforced('open-files-limit', `up to ${node.openFilesMax} on this node`),
    resourceView(),
    layerIsolation(isolationDomain),
  ];
}

/** What grades is apart in any case. */
const layerIsolation = (domain: string): Protection =>
  domain === NODE_DOMAIN
    ? {
        name: 'layer-isolation',
        state: 'degraded',
        detail:
          'layers are read-only, and share their page cache with the whole node, as was asked for',
      }
    : enforced(
        'layer-isolation',
        'mounts and page cache of layers are of this isolation domain alone',
      );

const networkIsolation = (isLinked: boolean): Protection =>
  enforced(
    'network-isolation',
    isLinked
      ? 'a network namespace whose one neighbour is a router without a way out of it'
      : 'a network namespace with a loopback alone',
  );

function controllerLimit(node: NodeFacts, controller: Controller, name: string): Protection {
  const place = node.cgroups.controllers[controller];
  return place === undefined
    ? { name, state: 'absent', detail: `this node has no ${controller} controller` }
    : enforced(name, `cgroups of version ${place.version}`);
}

function memoryLimit(node: NodeFacts): Protection {
  const limit = controllerLimit(node, 'memory', 'memory-limit');
  const memory = node.cgroups.controllers.memory;
  if (memory?.version !== 1 || node.cgroups.swapAccounting) return limit;
  return { ...limit, state: 'degraded', detail: 'this kernel does not count swap' };
}

function diskLimit({ driver, fitsMemory }: UpperChoice): Protection {
  if (driver === 'btrfs') {
    return { name: 'disk-limit', state: 'degraded', detail: 'bytes alone: btrfs counts no inodes' };
  }
  const detail = `bytes and inodes, by ${driver}`;
  if (fitsMemory) return enforced('disk-limit', detail);
  return {
    name: 'disk-limit',
    state: 'degraded',
    detail: `${detail}; it can use up the sandbox's memory before it is full`,
  };
}

const resourceView = (): Protection => ({
  name: 'resource-view',
  state: 'degraded',
  detail: 'nproc, meminfo, cpuinfo, stat and loadavg follow the limits; sysinfo(2) does not',
});

/**
 * Throws `unsupported` when a protection that is required is not enforced, or one of the list is absent
 * and that is not allowed.
 */
export function checkProtections(
  protections: readonly Protection[],
  required: readonly string[],
  allowDegraded: boolean,
): void {
  const refuse = (name: string, why: string) =>
    new DsecError('unsupported', `this node cannot protect by ${name}: ${why}`, {
      details: { protection: name },
    });
  for (const name of required) {
    const found = protections.find((protection) => protection.name === name);
    if (found === undefined) throw refuse(name, 'this backend does not know it');
    if (found.state !== 'enforced') throw refuse(name, found.detail ?? found.state);
  }
  const absent = protections.find(({ state }) => state === 'absent');
  if (absent !== undefined && !allowDegraded) throw refuse(absent.name, absent.detail ?? 'absent');
}
