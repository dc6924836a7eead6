/** A real edge in a process of its own, with a driver beside it that calls its services directly. */
import { createPublicKey } from 'node:crypto';
import { join } from 'node:path';
import { openContainerBackend, type UpperDriver } from '@dsec/backend-container';
import {
  type AdmissionLimits,
  cacheEnvironments,
  createEdgeLog,
  createHostProbe,
  defaultNodePolicy,
  type Edge,
  type EdgeServer,
  type EnvironmentSource,
  openEdge,
  startEdgeServer,
} from '@dsec/edge';
import { type LayerStore, openLayerStore, resolveEnvironment } from '@dsec/layers';
import type { SandboxLimits } from '@dsec/protocol';
import { DsecError, parseEdgeId, parseShardId, systemClock, systemRandom } from '@dsec/std';
import { cgroupCpuMs, unifiedCgroup } from '../cgroups.ts';
import { createEdgeDriver, type EdgeDriver } from './edge-driver.ts';
import {
  createNetworkDriver,
  MIRROR_RULES,
  type NetworkDriver,
  openNetworkOf,
  startMirror,
} from './edge-network.ts';
import { type EdgeNode, launcherGroup, openEdgeNode, until } from './edge-node.ts';

export interface EdgeWorkerOptions {
  readonly edgeId: string;
  readonly shardId: string;
  readonly storeRoot: string;
  readonly layers: readonly string[];
  /** PEM of the key whose tickets are taken, and its id. */
  readonly publicKey: string;
  readonly keyId: string;
  readonly upperDrivers?: readonly UpperDriver[];
  readonly limits?: Partial<SandboxLimits>;
  readonly admission?: Partial<AdmissionLimits>;
  /** Sandboxes have a network, with a mirror in this process; judged by the packet filter, or not. */
  readonly network?: 'filtered' | 'unfiltered' | undefined;
}

export interface EdgeCost {
  /** Of the edge's process, with the driver in it where that is. */
  readonly edgeMs: number;
  /** Of the launcher, the agents and everything that ran in sandboxes, with all that has ended. */
  readonly sandboxesMs: number;
  readonly edgeRssBytes: number;
}

/** Of a lookup, a rate or a leftover the sum over the life of the worker. */
export type EdgeCommands = EdgeDriver['commands'] &
  NetworkDriver['commands'] & {
    describe(): { readonly socketPath: string; readonly upper: string };
    cost(): EdgeCost;
    pooledCgroups(): number;
    /** Resolves when nothing is left of any sandbox; rejects with what is. */
    settle(): Promise<void>;
  };

const UPPER_DRIVERS: readonly UpperDriver[] = ['tmpfs'];
/** As of a daemon that was not told otherwise. */
const LOG_LEVEL = 'info';

export async function openEdgeWorker(options: EdgeWorkerOptions, signal: AbortSignal) {
  const edgeId = parseEdgeId(options.edgeId);
  const node = await openEdgeNode(edgeId, options.storeRoot);
  let edge: Edge | undefined;
  let server: EdgeServer | undefined;
  const mirror = options.network === undefined ? undefined : await startMirror();
  const close = async () => {
    await server?.close(0);
    await edge?.close();
    mirror?.close();
    await node.remove();
  };
  try {
    edge = await openBenchEdge(options, node, signal);
    const socketPath = join(node.stateRoot, 'edge.sock');
    server = await startEdgeServer({
      ...{ edgeId, clock: systemClock, listen: { socketPath } },
      publicKeys: new Map([[options.keyId, createPublicKey(options.publicKey)]]),
      ...{ sandboxes: edge.sandboxes, handlers: edge.handlers, metrics: edge.metrics },
      log: createEdgeLog(edgeId, LOG_LEVEL),
    });
    return commandsOf(options, edge, node, socketPath, signal, close);
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

function commandsOf(
  options: EdgeWorkerOptions,
  edge: Edge,
  node: EdgeNode,
  socketPath: string,
  signal: AbortSignal,
  closeNode: () => Promise<void>,
) {
  const create = {
    ...{ layers: [...options.layers], limits: options.limits ?? {} },
    ...(options.network === undefined ? {} : { network: MIRROR_RULES }),
  };
  const driver = createEdgeDriver(edge, create, signal);
  const settle = async () => {
    await until('sandboxes leave nothing', () => node.leftovers().length === 0).catch(() => {
      throw new Error(`left of sandboxes: ${node.leftovers().slice(0, 20).join(', ')}`);
    });
  };
  const commands: EdgeCommands = {
    ...driver.commands,
    ...createNetworkDriver(edge, create),
    describe: () => ({ socketPath, upper: driver.upperDriver() }),
    cost: () => costOf(node),
    pooledCgroups: node.pooledCgroups,
    settle,
  };
  const close = async () => {
    await driver.stopAll();
    const left = await settle().catch((error: unknown) => error);
    await closeNode();
    if (left !== undefined) throw left;
  };
  return { commands, close };
}

async function openBenchEdge(
  options: EdgeWorkerOptions,
  { stateRoot, storeRoot }: EdgeNode,
  signal: AbortSignal,
): Promise<Edge> {
  const layerStore = await openLayerStore(storeRoot);
  const edgeId = parseEdgeId(options.edgeId);
  const probe = createHostProbe([stateRoot]);
  const launcherSocket = join(stateRoot, 'run/launcher.sock');
  const upperDrivers = options.upperDrivers ?? UPPER_DRIVERS;
  return openEdge(
    {
      ...{ stateRoot, edgeId, shardId: parseShardId(options.shardId) },
      ...{ clock: systemClock, random: systemRandom, probe, version: 'bench' },
      policy: defaultNodePolicy(probe()),
      openBackend: (epoch) =>
        openContainerBackend({
          ...{ stateRoot, edgeId, epoch, launcherSocket, layerStore, upperDrivers },
        }),
      environments: cacheEnvironments(environmentsOf(layerStore), systemClock),
      log: createEdgeLog(edgeId, LOG_LEVEL),
      doctor: async () => {
        throw new DsecError('unsupported', 'a benchmark asks no doctor');
      },
      ...(options.admission === undefined ? {} : { admission: options.admission }),
      ...openNetworkOf(options.network, stateRoot),
    },
    signal,
  );
}

function environmentsOf(store: LayerStore): EnvironmentSource {
  return {
    async layersOf(name) {
      throw new DsecError('not-found', `there is no environment ${name}`);
    },
    resolve: (refs) => resolveEnvironment(store, refs),
  };
}

function costOf({ cgroupName }: EdgeNode): EdgeCost {
  const { user, system } = process.cpuUsage();
  return {
    edgeMs: (user + system) / 1000,
    sandboxesMs:
      cgroupCpuMs(unifiedCgroup(cgroupName)) +
      cgroupCpuMs(unifiedCgroup(launcherGroup(cgroupName))),
    edgeRssBytes: process.memoryUsage.rss(),
  };
}
