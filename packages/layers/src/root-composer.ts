import { constants, fstatSync } from 'node:fs';
import { chmod, chown } from 'node:fs/promises';
import {
  attach,
  type MountFd,
  mountFdOf,
  mountOverlay,
  O_PATH,
  openAt,
  openTree,
  openTreeAttr,
  unmount,
} from '@dsec/linux';
import { asDsecError, assert, type CleanupStack, createCleanupStack, type Digest } from '@dsec/std';
import { ensureDirectory } from './durable-file.ts';
import type { MountPlan, RootPlan, UpperPlan } from './mount-plan.ts';
import type { NodeLayers } from './node-layers.ts';

/** A composed root, detached until it is attached. */
export interface ComposedRoot {
  readonly mount: MountFd;
  /** Attaches the root at a directory of the caller's own; no link on the way is followed. */
  attach(target: string): void;
  /** Undoes everything, in reverse. Throws the first failure, after all is done that can be. */
  close(): Promise<void>;
}

const { O_DIRECTORY, O_NOFOLLOW } = constants;

/**
 * Carries out a mount plan: mounts or joins each layer, then composes them. Everything is undone when a
 * step fails. The mounts belong to this process's mount namespace, which must be private.
 */
export async function composeRoot(
  node: NodeLayers,
  plan: MountPlan,
  signal?: AbortSignal,
): Promise<ComposedRoot> {
  assert(node.form === plan.form, `a plan in ${plan.form} form on a node in ${node.form} form`);
  const cleanup = createCleanupStack();
  try {
    const layers = new Map<Digest, MountFd>();
    for (const layer of plan.layers) {
      const lease = await node.acquire(layer, signal);
      cleanup.push(`layer ${layer.layerId}`, () => lease.release());
      layers.set(layer.layerId, lease.value);
    }
    const mount = await mountRoot(plan, layers, cleanup);
    cleanup.push('root', () => mount.close());
    return composedRoot(mount, cleanup);
  } catch (thrown) {
    await cleanup.run();
    throw asDsecError(thrown);
  }
}

function composedRoot(mount: MountFd, cleanup: CleanupStack): ComposedRoot {
  return {
    mount,
    attach(target) {
      const flags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
      const directory = mountFdOf(openAt(target, { flags, resolve: ['noSymlinks'] }));
      try {
        attach(mount, { fd: directory.fd });
      } finally {
        directory.close();
      }
      // Detached even while somebody is inside: the table must not keep what this root's owner has given up.
      cleanup.push(target, () => unmount(target, { detach: true }));
    },
    async close() {
      const [first] = await cleanup.run();
      if (first !== undefined) throw first.error;
    },
  };
}

async function mountRoot(
  plan: MountPlan,
  layers: ReadonlyMap<Digest, MountFd>,
  cleanup: CleanupStack,
): Promise<MountFd> {
  const { root, form, attributes } = plan;
  const layerOf = (layerId: Digest) => {
    const mount = layers.get(layerId);
    assert(mount !== undefined, `layer ${layerId} of the root is not among the layers of the plan`);
    return mount;
  };
  if (root.kind === 'layer') {
    return mountFdOf(openTreeAttr({ fd: layerOf(root.layerId).fd }, { set: attributes }));
  }
  if (root.upper !== undefined) await makeUpper(root.upper, layerOf(bottomOf(root)));
  if (form === 'path') {
    const paths = new Map(plan.layers.map((layer) => [layer.layerId, layer.mountPath]));
    const lower = root.lower.map((layerId) => paths.get(layerId) ?? '');
    const upper = root.upper && { upper: root.upper.upper, work: root.upper.work };
    return mountOverlay({ form, lower, ...upper, attributes });
  }
  const upper = root.upper && openUpper(root.upper, cleanup);
  return mountOverlay({ form, lower: root.lower.map(layerOf), ...upper, attributes });
}

function bottomOf(root: Extract<RootPlan, { kind: 'overlay' }>): Digest {
  const bottom = root.lower.at(-1);
  assert(bottom !== undefined, 'an overlay has a lower layer');
  return bottom;
}

/**
 * A new upper is the root directory of what is composed, so it takes the mode and owner of the base's
 * root: a toolkit that was packed from a 0700 directory must not close the root to everybody. An upper
 * that exists keeps its own.
 */
async function makeUpper(upper: UpperPlan, base: MountFd): Promise<void> {
  await ensureDirectory(upper.directory);
  await ensureDirectory(upper.work);
  if (!(await ensureDirectory(upper.upper))) return;
  const { uid, gid, mode } = fstatSync(base.fd);
  await chown(upper.upper, uid, gid);
  await chmod(upper.upper, mode & 0o7777);
}

/** Through a detached clone, so that the mount table inside does not show where on the host the upper is. */
function openUpper(upper: UpperPlan, cleanup: CleanupStack): { upper: MountFd; work: MountFd } {
  const tree = mountFdOf(openTree(upper.directory, { clone: true }));
  cleanup.push('upper', () => tree.close());
  const open = (name: string) => {
    const flags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
    const opened = mountFdOf(openAt(name, { dirFd: tree.fd, flags }));
    cleanup.push(name, () => opened.close());
    return opened;
  };
  return { upper: open('upper'), work: open('work') };
}
