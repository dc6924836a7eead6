import { lstat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { attach, descriptorPath, errnoOf, type MountFd, mountErofs, unmount } from '@dsec/linux';
import { createCleanupStack, type Digest, DsecError } from '@dsec/std';
import { ensureDirectory, openRegularFile, promised } from './durable-file.ts';
import type { LayerMountPlan, MountForm } from './mount-plan.ts';
import { createSharedPool, type SharedLease } from './shared-pool.ts';
import { sweepStages } from './stage.ts';
import type { LayerStore } from './store-layout.ts';
import { runInWorker } from './worker-client.ts';

/**
 * The layer mounts of a node. Each layer is mounted once and shared by everybody who acquires it: a
 * second mount of the same files would cache every page twice. One instance is one isolation domain
 * (THREATS B1): whoever must not share cached pages with others uses an instance, and in the `path` form
 * a directory, of its own.
 *
 * Mounts are made in this process's mount namespace, which the caller has made private.
 */
export interface NodeLayers {
  readonly form: MountForm;
  /** Absolute; plans for this node name it. */
  readonly directory: string;
  /**
   * Mounts the layer, or joins the mount that is there. The first time, its metadata is copied to the
   * node, checked against its digest and validated. `data-loss`, `layer-invalid`; the signal's reason
   * when aborted.
   */
  acquire(plan: LayerMountPlan, signal?: AbortSignal): Promise<SharedLease<MountFd>>;
  /** How many users each mounted layer has. */
  users(): ReadonlyMap<Digest, number>;
}

export interface NodeLayersOptions {
  readonly store: LayerStore;
  /** On a local disk and for this node's root alone; created with mode 0700. */
  readonly directory: string;
  readonly form: MountForm;
  /**
   * Reads data past the page cache of the store's file system. Only for kernels where that is known to be
   * sound.
   */
  readonly directIo: boolean;
  /** Stand-ins for the kernel and the worker, for tests without root. */
  readonly effects?: NodeEffects;
}

export interface NodeEffects {
  /** Puts a verified copy of the metadata into the node directory. */
  prepare(plan: LayerMountPlan, signal: AbortSignal): Promise<void>;
  /** Mounts a prepared layer; in the `path` form also attaches it. */
  mount(plan: LayerMountPlan): Promise<MountFd>;
  unmount(plan: LayerMountPlan, mount: MountFd): void;
}

const PRIVATE_MODE = 0o700;

interface MountedLayer {
  readonly plan: LayerMountPlan;
  readonly mount: MountFd;
}

/**
 * Opens a node directory, creating it in one that exists. `permission-denied` when others could write
 * there.
 */
export async function openNodeLayers(options: NodeLayersOptions): Promise<NodeLayers> {
  const { form } = options;
  const directory = resolve(options.directory);
  const effects = options.effects ?? kernelEffects(options, directory);
  await openPrivateDirectory(directory);
  await sweepStages(join(directory, 'tmp'));

  /** Layers whose copy on this node this process has verified. Nobody else can write there since. */
  const verified = new Set<Digest>();
  const pool = createSharedPool<Digest, MountedLayer>(({ plan, mount }) => {
    effects.unmount(plan, mount);
  });

  return {
    form,
    directory,
    async acquire(plan, signal) {
      const open = async (abandoned: AbortSignal) => {
        if (!verified.has(plan.layerId)) {
          await effects.prepare(plan, abandoned);
          verified.add(plan.layerId);
        }
        return { plan, mount: await effects.mount(plan) };
      };
      const lease = await pool.acquire(plan.layerId, open, signal);
      return { value: lease.value.mount, release: lease.release };
    },
    users: () => pool.users(),
  };
}

function kernelEffects(options: NodeLayersOptions, nodeDirectory: string): NodeEffects {
  const { store, form, directIo } = options;
  return {
    async prepare({ layerId, metaBytes, devices }, signal) {
      const layer = { layerId, metaBytes, devices };
      const job = { type: 'prepare', storeRoot: store.root, nodeDirectory, layer } as const;
      await runInWorker(job, { signal });
    },
    async mount(plan) {
      const mount = await mountLayer(plan, directIo);
      if (form === 'descriptor') return mount;
      try {
        await ensureDirectory(plan.mountPath, PRIVATE_MODE);
        attach(mount, plan.mountPath);
        return mount;
      } catch (thrown) {
        mount.close();
        throw thrown;
      }
    },
    unmount(plan, mount) {
      mount.close();
      if (form === 'path') unmount(plan.mountPath);
    },
  };
}

/**
 * Hands the kernel descriptors, not names: what is mounted is what was looked at here, whatever happens
 * to the names of a shared store meanwhile. A device that is not a plain file of the right length is
 * refused first.
 */
async function mountLayer(plan: LayerMountPlan, directIo: boolean): Promise<MountFd> {
  const files = createCleanupStack();
  const openFile = async (path: string, bytes: number) => {
    const { handle, size } = await promised(openRegularFile(path));
    files.push(path, () => handle.close());
    if (size !== bytes) {
      throw new DsecError('data-loss', `${path} has ${size} bytes instead of ${bytes}`);
    }
    return handle.fd;
  };
  try {
    const metaFd = await openFile(plan.metaPath, plan.metaBytes);
    const devices: string[] = [];
    for (const { path, bytes } of plan.devices) {
      devices.push(descriptorPath(await openFile(path, bytes)));
    }
    const metaPath = descriptorPath(metaFd);
    return mountErofs({ metaPath, devices, directIo, attributes: ['noDev'] });
  } catch (thrown) {
    if (errnoOf(thrown) !== 'ENOTBLK') throw thrown;
    const places = [plan.metaPath, ...plan.devices.map(({ path }) => path)].map(dirname);
    throw new DsecError(
      'unsupported',
      `the kernel cannot mount layers from the file system of ${[...new Set(places)].join(' or ')}; ` +
        'tmpfs and overlay cannot hold them, local disks and network file systems can',
      { cause: thrown },
    );
  } finally {
    await files.run();
  }
}

/** Makes or opens a node directory that nobody else can write; `permission-denied` otherwise. */
export async function openPrivateDirectory(directory: string): Promise<void> {
  await ensureDirectory(directory, PRIVATE_MODE);
  const found = await lstat(directory);
  const isPrivate =
    found.isDirectory() && found.uid === process.geteuid?.() && (found.mode & 0o077) === 0;
  if (!isPrivate) {
    throw new DsecError(
      'permission-denied',
      `${directory} must be a directory of mode 0700 that belongs to this user, ` +
        'since the kernel parses what is in it',
    );
  }
  for (const name of ['layers', 'mounts', 'tmp']) {
    await ensureDirectory(join(directory, name), PRIVATE_MODE);
  }
}
