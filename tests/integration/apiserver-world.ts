/** Fleets in one process: simulated edges, and apiservers that share one store. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Apiserver, startApiserver } from '@dsec/apiserver';
import { createSimBackend, createSimWorld } from '@dsec/backend/sim';
import {
  defaultNodePolicy,
  type Edge,
  type EdgeServer,
  openEdge,
  startEdgeServer,
} from '@dsec/edge';
import type { LayerStore } from '@dsec/layers';
import { OPERATION_CLASSES, type OperationClass, ROUTES, type Route } from '@dsec/protocol';
import {
  type Clock,
  DsecError,
  type EdgeId,
  type PrincipalId,
  type ProjectId,
  parseEdgeId,
  parseShardId,
  systemClock,
  systemRandom,
} from '@dsec/std';
import { createMemoryStore, type Store } from '@dsec/store';
import {
  type CallInput,
  type CallOptions,
  type CallReply,
  callRoute,
  connectWebSocket,
  createHttpClient,
  type HttpServerLimits,
  type ListenAddress,
  RETRY_POLICY,
  type WebSocketChannel,
} from '@dsec/transport';
import { BOOT_ID, ENVIRONMENTS, HOST } from '../../packages/edge/test/core-world.ts';

export const SHARD = parseShardId('s1');
export const LAYERS = ['base/t:1.0.0'];
const PLATFORM = 'platform' as ProjectId;
const TICKET_KEY = 'test-key';

/** An edge refuses tickets of its first two seconds; one whose clock is behind by as much does not wait. */
const behind: Clock = { ...systemClock, wallMs: () => systemClock.wallMs() - 1980 };

export interface TestEdge {
  readonly id: EdgeId;
  readonly address: ListenAddress;
  readonly edge: Edge;
  readonly server: EdgeServer;
  /** Stops serving; what it was is kept. */
  stop(): Promise<void>;
}

export interface Caller {
  readonly key: string;
  call<R extends Route>(
    route: R,
    input: CallInput<R>,
    options?: CallOptions,
  ): Promise<CallReply<R>>;
  socket(target: string): Promise<WebSocketChannel>;
  fetch(target: string, init?: RequestInit): Promise<Response>;
}

export interface Fleet {
  readonly edges: readonly TestEdge[];
  readonly apiservers: readonly Apiserver[];
  readonly store: Store;
  /** With a new key, at one of the apiservers. */
  callerOf(
    project: string,
    options?: { readonly at?: number; readonly scopes?: readonly OperationClass[] },
  ): Promise<Caller>;
  /** With a key that is there already. */
  callerWith(secret: string, at?: number): Caller;
  close(): Promise<void>;
}

export interface FleetOptions {
  readonly edges?: number;
  readonly apiservers?: number;
  /** Sandboxes that an edge takes. */
  readonly slotsMax?: number;
  readonly layers?: LayerStore;
  readonly store?: Store;
  readonly limits?: Partial<HttpServerLimits>;
  /** Default: loopback and any port. */
  readonly listen?: { readonly host: string; readonly port: number };
  readonly allowedHosts?: readonly string[];
  /** Of each key. */
  readonly rateLimit?: { readonly perSecond: number; readonly burst: number };
  /** Its edges take no tickets for two seconds, as edges do that have just started. */
  readonly justStarted?: boolean;
}

const quiet = { debug() {}, info() {}, warn() {}, error() {} } as never;

export async function openFleet(options: FleetOptions = {}): Promise<Fleet> {
  const { store = createMemoryStore(), layers, limits, rateLimit } = options;
  const root = mkdtempSync(join(tmpdir(), 'dsec-fleet-'));
  const keys = generateKeyPairSync('ed25519');
  const edges = await Promise.all(
    Array.from({ length: options.edges ?? 1 }, (_, index) =>
      openTestEdge(root, index, keys.publicKey, options),
    ),
  );
  const apiservers = await Promise.all(
    Array.from({ length: options.apiservers ?? 1 }, () =>
      startApiserver({
        ...{ store, layers, clock: systemClock, random: systemRandom, log: quiet },
        listen: options.listen ?? { host: '127.0.0.1', port: 0 },
        ...(options.allowedHosts === undefined ? {} : { allowedHosts: options.allowedHosts }),
        edges: edges.map(({ id, address }) => ({ edgeId: id, shardId: SHARD, address })),
        ticketKey: { id: TICKET_KEY, privateKey: keys.privateKey },
        ...{ platformProject: PLATFORM, version: '0.1.0', recheckMs: 200 },
        ...(limits === undefined ? {} : { limits }),
        rateLimit,
      }),
    ),
  );
  const clients: { close(): Promise<void> }[] = [];
  const connect = (address: ListenAddress, secret: string): Caller => {
    const { host, port } = 'port' in address ? address : { host: '127.0.0.1', port: 0 };
    const caller = callerWith(`http://${host}:${port}`, secret);
    clients.push(caller.client);
    return caller;
  };
  return {
    ...{ edges, apiservers, store },
    async callerOf(project, { at = 0, scopes = OPERATION_CLASSES } = {}) {
      const { iam, address } = apiservers[at] as Apiserver;
      const owner = { project: project as ProjectId, principal: 'someone' as PrincipalId };
      const { secret } = await iam.create({ name: 'test', ...owner, scopes });
      return connect(address, secret);
    },
    callerWith: (secret, at = 0) => connect((apiservers[at] as Apiserver).address, secret),
    async close() {
      for (const client of clients) await client.close();
      for (const apiserver of apiservers) await apiserver.close(100);
      for (const edge of edges) await edge.stop();
      await store.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function callerWith(baseUrl: string, key: string) {
  const headers = { authorization: `Bearer ${key}` };
  const client = createHttpClient({
    ...{ baseUrl, headers, deadlineMs: 60_000 },
    retries: { ...RETRY_POLICY, attemptsMax: 1 },
  });
  return {
    ...{ key, client },
    call: <R extends Route>(route: R, input: CallInput<R>, options?: CallOptions) =>
      callRoute(client, route, input, options),
    socket: (target: string) => connectWebSocket({ baseUrl, target, headers }),
    fetch: (target: string, init: RequestInit = {}) =>
      fetch(`${baseUrl}${target}`, { ...init, headers: { ...headers, ...init.headers } }),
  };
}

async function openTestEdge(
  root: string,
  index: number,
  publicKey: ReturnType<typeof generateKeyPairSync>['publicKey'],
  { slotsMax, justStarted }: FleetOptions,
): Promise<TestEdge> {
  const id = parseEdgeId(`e${index + 1}`);
  const stateRoot = join(root, id);
  mkdirSync(stateRoot);
  const world = createSimWorld({ clock: systemClock, random: systemRandom });
  const edge = await openEdge(
    {
      ...{ stateRoot, edgeId: id, shardId: SHARD, bootId: BOOT_ID },
      ...{ random: systemRandom, clock: systemClock, environments: ENVIRONMENTS },
      ...{ policy: defaultNodePolicy(HOST), probe: () => HOST },
      ...(slotsMax === undefined ? {} : { admission: { slotsMax } }),
      openBackend: async () => createSimBackend(world),
      log: { info: () => undefined, warn: () => undefined },
      ...{ version: '0.1.0', platformProject: PLATFORM },
      async doctor() {
        throw new DsecError('unsupported', 'a simulated node is not examined');
      },
    },
    new AbortController().signal,
  );
  const server = await startEdgeServer({
    ...{ listen: { socketPath: join(root, `${id}.sock`) }, edgeId: id, log: quiet },
    clock: justStarted === true ? systemClock : behind,
    ...{ sandboxes: edge.sandboxes, handlers: edge.handlers, metrics: edge.metrics },
    publicKeys: new Map([[TICKET_KEY, publicKey]]) as never,
  });
  let stopped: Promise<void> | undefined;
  return {
    ...{ id, edge, server, address: server.address },
    stop() {
      stopped ??= server.close(100).then(() => edge.close());
      return stopped;
    },
  };
}

/** A sandbox that runs, of the tiny layer. */
export const createOne = (caller: Caller, more: Record<string, unknown> = {}, key?: string) =>
  caller.call(
    ROUTES.createSandbox,
    { body: { layers: LAYERS, ...more } },
    key === undefined ? {} : { idempotencyKey: key },
  );
