import { realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Duplex } from 'node:stream';
import type { Backend, BackendReport, SandboxKey } from '@dsec/backend';
import { type LayerFiles, type LayerStore, type NodeCopies, openNodeCopies } from '@dsec/layers';
import {
  asDsecError,
  type Clock,
  type Digest,
  DsecError,
  type EdgeId,
  systemClock,
} from '@dsec/std';
import { connectUnix } from '@dsec/transport';
import { exitOf } from './exit-reason.ts';
import { connectLauncher, type ExitedObject } from './launcher-client.ts';
import { type LauncherLink, openLauncherLink } from './launcher-link.ts';
import { createLayerMounts, type LayerMountEffects } from './layer-mounts.ts';
import { layerOfKey } from './mount-key.ts';
import { probeNode } from './node-facts.ts';
import { installPlatformTools } from './platform-tools.ts';
import { createPolicies } from './policies.ts';
import { protectionsOf } from './protections.ts';
import { createRouter } from './router.ts';
import {
  freezeSandbox,
  pauseSandbox,
  sandboxStats,
  thawSandbox,
  updateSandbox,
} from './sandbox-control.ts';
import { createSandbox } from './sandbox-create.ts';
import { type BackendContext, endedByItself } from './sandbox-life.ts';
import { readoptSandboxes, recoverSandboxes } from './sandbox-recovery.ts';
import { stopSandbox } from './sandbox-stop.ts';
import { objectId, socketPath } from './spawn-spec.ts';
import type { UpperDriver } from './upper-choice.ts';
import { createViewFiles } from './view-files.ts';

export interface ContainerBackendOptions {
  /** Of the edge: absolute, mode 0700. */
  readonly stateRoot: string;
  readonly edgeId: EdgeId;
  /** Of the edge's journal: the launcher obeys the newest alone. */
  readonly epoch: number;
  /** `run/launcher.sock` below the state root, unless something stands between. */
  readonly launcherSocket: string;
  /** Sees to it that a launcher listens there; called before each attempt to connect. Default: others do. */
  readonly ensureLauncher?: () => Promise<unknown>;
  /** Below the state root, or mounted there: the launcher opens nothing else. */
  readonly layerStore: LayerStore;
  /** What may be used, the preferred first. Default: what this node can, memory before disk. */
  readonly upperDrivers?: readonly UpperDriver[];
  /** Layer mounts that are kept while nobody uses them. */
  readonly unusedLayersMax?: number;
  /** Reads layers past the page cache of the store's file system; see `NodeLayersOptions`. */
  readonly directIo?: boolean;
  /** A directory of the platform's tools, for sandboxes that grade. Absent: none can be made here. */
  readonly platformTools?: string | undefined;
  readonly clock?: Clock;
}

const UNUSED_LAYERS_MAX = 256;

/**
 * Sandboxes as containers of this node, made by its launcher. Connects in the background: until there is
 * a launcher, calls are `unavailable`, and so is the report. `unsupported` when the node can run none;
 * `permission-denied` when others could write to its state.
 */
export async function openContainerBackend(options: ContainerBackendOptions): Promise<Backend> {
  const { clock = systemClock } = options;
  const stateRoot = realpathSync(options.stateRoot);
  checkStore(stateRoot, options.layerStore);
  const { platformTools: tools } = options;
  const node = {
    ...probeNode(options.edgeId, options.upperDrivers),
    platformTools: tools === undefined ? undefined : installPlatformTools(stateRoot, tools),
  };
  const copies = await openNodeCopies(options.layerStore, join(stateRoot, 'node'));
  const views = createViewFiles(stateRoot);
  const lives: BackendContext['lives'] = new Map();
  const listeners: BackendContext['listeners'] = [];

  const link = openLauncherLink({
    clock,
    async connect(signal) {
      await options.ensureLauncher?.();
      return connectLauncher({
        socketPath: options.launcherSocket,
        edgeId: options.edgeId,
        epoch: options.epoch,
        onExited: (exited) => noteExit(context, exited),
        signal,
      });
    },
    async onConnected(client) {
      views.open();
      await readoptSandboxes(context, client);
    },
  });
  const layers = createLayerMounts({
    effects: mountEffects(stateRoot, copies, link, options.directIo ?? false),
    unusedMax: options.unusedLayersMax ?? UNUSED_LAYERS_MAX,
  });
  const context: BackendContext = {
    ...{ stateRoot, node, link, layers, views, clock, lives, listeners },
    router: createRouter(stateRoot, link, node.cgroups.unified),
    slots: new Map(),
  };
  return backendOf(context);
}

function backendOf(context: BackendContext): Backend {
  return {
    kind: 'container',
    probe: (signal) => report(context, signal),
    create: (plan, signal) => createSandbox(context, plan, signal),
    dial: (key, signal) => dial(context, key, signal),
    stop: (key, signal) => stopSandbox(context, key, signal),
    update: (key, limits, signal) => updateSandbox(context, key, limits, signal),
    freeze: (key, signal) => freezeSandbox(context, key, signal),
    thaw: (key, signal) => thawSandbox(context, key, signal),
    pause: (key, signal) => pauseSandbox(context, key, signal),
    resume: (key, signal) => thawSandbox(context, key, signal),
    stats: async (key) => sandboxStats(context, key),
    recover: (claims, signal) => recoverSandboxes(context, claims, signal),
    policies: createPolicies(context),
    router: (gateway, signal) => context.router.open(gateway, signal),
    onExit: (listener) => context.listeners.push(listener),
    async close() {
      context.link.close();
      await context.layers.settled();
    },
  };
}

function checkStore(stateRoot: string, store: LayerStore): void {
  const inside = relative(stateRoot, realpathSync(store.root));
  if (inside.startsWith('..')) {
    throw new DsecError(
      'unsupported',
      `the layer store ${store.root} is not below ${stateRoot}: bind or mount it there, ` +
        'as the launcher opens nothing else',
    );
  }
}

function mountEffects(
  stateRoot: string,
  copies: NodeCopies,
  link: LauncherLink,
  directIo: boolean,
): LayerMountEffects {
  /** Copies that this process has verified. Nobody else can write them. */
  const verified = new Map<Digest, LayerFiles>();
  const below = (path: string) => Buffer.from(relative(stateRoot, realpathSync(path)));
  return {
    async mount(key, signal) {
      const layerId = layerOfKey(key);
      const files = verified.get(layerId) ?? (await copies.prepare(layerId, signal));
      verified.set(layerId, files);
      const client = await link.client(signal);
      const devices = files.devicePaths.map((path) => ({ file: below(path) }));
      await client.mountLayer(
        { layerId: key, meta: below(files.metaPath), devices, directIo },
        signal,
      );
    },
    async unmount(key) {
      const client = await link.client();
      await client.unmountLayer(key);
    },
  };
}

function noteExit(context: BackendContext, exited: ExitedObject): void {
  const life = context.lives.get(`${exited.name}-${exited.generation}`);
  if (life?.state === 'creating') life.earlyExit = exited;
  else if (life !== undefined) endedByItself(context, life, exitOf(life.key, exited));
}

async function report(context: BackendContext, signal?: AbortSignal): Promise<BackendReport> {
  const { node, link } = context;
  const [driver = 'tmpfs'] = node.upperDrivers;
  const found = {
    kind: 'container',
    protections: protectionsOf(node, { driver, fitsMemory: true }),
    network: context.router.report(),
    upperDrivers: node.upperDrivers,
    slotsMax: node.slotsMax,
  } as const;
  try {
    await link.client(signal);
    return found;
  } catch (thrown) {
    signal?.throwIfAborted();
    return { ...found, unavailable: asDsecError(thrown) };
  }
}

async function dial(
  context: BackendContext,
  key: SandboxKey,
  signal?: AbortSignal,
): Promise<Duplex> {
  if (!context.lives.has(objectId(key))) {
    throw new DsecError('not-found', `no sandbox ${objectId(key)} is here`);
  }
  const socket = connectUnix(join(context.stateRoot, socketPath(key)), { allowHalfOpen: true });
  return new Promise<Duplex>((resolve, reject) => {
    const settle = (error: DsecError | undefined) => {
      signal?.removeEventListener('abort', onAbort);
      socket.off('connect', onConnect).off('error', onError);
      if (error === undefined) return resolve(socket);
      // Whatever it says later is of no interest to anybody.
      socket.on('error', () => {}).destroy();
      reject(error);
    };
    const onConnect = () => settle(undefined);
    const onError = (cause: Error) =>
      settle(new DsecError('unavailable', `${objectId(key)} does not answer`, { cause }));
    const onAbort = () => settle(asDsecError(signal?.reason));
    if (signal?.aborted) return onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    socket.on('connect', onConnect).on('error', onError);
  });
}
