/** An apiserver, put together: stateless but for the store, so that any number of them serve one fleet. */
import { type Iam, openIam } from '@dsec/iam';
import { type LayerStore, resolveRef } from '@dsec/layers';
import { ROUTES, type Route } from '@dsec/protocol';
import { type Clock, type ProjectId, type Random, SECOND_MS } from '@dsec/std';
import type { Store } from '@dsec/store';
import {
  createHttpServer,
  type HttpServerLimits,
  type ListenAddress,
  type TlsFiles,
} from '@dsec/transport';
import { createWatcher, type Watcher } from '@dsec/watcher';
import { type Children, createChildren } from './agents/children.ts';
import { createSandboxLife, type SandboxLife } from './agents/sandbox-life.ts';
import { type ApiserverLog, logRequest } from './apiserver-log.ts';
import { type ApiserverMetrics, createApiserverMetrics } from './apiserver-metrics.ts';
import { createBatch } from './create/batch.ts';
import { createCreate } from './create/create.ts';
import { createKeyQuota } from './create/key-quota.ts';
import { createPlacer, type Placer } from './create/placer.ts';
import { createEvents, type Events } from './events/events.ts';
import { createEdgeLink, type EdgeAddress } from './fleet/edge-link.ts';
import { createFleet, type Fleet } from './fleet/fleet.ts';
import type { TicketKey } from './fleet/ticket-signer.ts';
import { createForward } from './forward/forward.ts';
import { createGrade } from './grade/grade.ts';
import { createHealth } from './health.ts';
import { buildDocsPage, DOCS_ROUTE } from './http/docs-page.ts';
import { createEnvironmentHandlers } from './http/environment-handlers.ts';
import { createGradeHandlers } from './http/grade-handlers.ts';
import { createJobHandlers } from './http/job-handlers.ts';
import { createKeyAuthorizer } from './http/key-authorizer.ts';
import { createKeyHandlers } from './http/key-handlers.ts';
import { createLayerHandlers, createMissingLayerHandlers } from './http/layer-handlers.ts';
import { createPlatformHandlers } from './http/platform-handlers.ts';
import { createRateLimits, type RateLimit } from './http/rate-limits.ts';
import { createSandboxHandlers } from './http/sandbox-handlers.ts';
import { createJobs } from './jobs/jobs.ts';
import { createEnvironments } from './layers/environments.ts';

export interface ApiserverOptions {
  readonly listen: ListenAddress;
  readonly edges: readonly EdgeAddress[];
  readonly store: Store;
  /** Absent: the routes of layers are `unsupported`. */
  readonly layers?: LayerStore | undefined;
  readonly ticketKey: TicketKey;
  /** Whose tickets edges let see everything; no key is ever of this project. */
  readonly platformProject: ProjectId;
  /** How often each edge is asked what has changed. */
  readonly watchEveryMs?: number;
  /** How often the keys of open streams and WebSockets are looked at again. */
  readonly recheckMs?: number;
  /** Of each key. Default: `RATE_LIMIT`. */
  readonly rateLimit?: RateLimit | undefined;
  /** Of DSec. */
  readonly version: string;
  readonly log: ApiserverLog;
  readonly clock: Clock;
  readonly random: Random;
  /** Values of the Host header that are answered. Default: the names of loopback. */
  readonly allowedHosts?: readonly string[];
  readonly limits?: Partial<HttpServerLimits>;
  /** Absent: it serves without, which is for this machine alone. */
  readonly tls?: TlsFiles | undefined;
}

export interface Apiserver {
  /** Where it listens. */
  readonly address: ListenAddress;
  readonly iam: Iam;
  readonly watcher: Watcher;
  /** Answers what was asked, then lets go. The store is the caller's. */
  close(patienceMs?: number): Promise<void>;
}

const RECHECK_MS = 5 * SECOND_MS;
const API_ROUTES = { ...ROUTES, getDocs: DOCS_ROUTE } as const;

/** What everything else stands on. */
interface Core {
  readonly iam: Iam;
  readonly fleet: Fleet;
  readonly placer: Placer;
  readonly watcher: Watcher;
  readonly events: Events;
  readonly metrics: ApiserverMetrics;
  readonly life: SandboxLife;
  readonly children: Children;
}

/** Resolves when it serves. Rejects when it cannot listen. */
export async function startApiserver(options: ApiserverOptions): Promise<Apiserver> {
  const { listen, log, clock, random } = options;
  const core = openCore(options);
  const { iam, fleet, watcher, events, metrics } = core;
  const letGo = async () => {
    events.close();
    watcher.close();
    await fleet.close();
  };
  const limits = createRateLimits(clock, options.rateLimit);
  const authorize = createKeyAuthorizer({ iam, limits, life: core.life, children: core.children });
  try {
    const server = await createHttpServer({
      ...{ listen, routes: API_ROUTES, isForwarded },
      handlers: handlersOf(options, core),
      forward: createForward({ fleet, clock, random }),
      ...{ authorize, admit: authorize, recheckMs: options.recheckMs ?? RECHECK_MS },
      ...(options.allowedHosts === undefined ? {} : { allowedHosts: options.allowedHosts }),
      ...(options.limits === undefined ? {} : { limits: options.limits }),
      ...(options.tls === undefined ? {} : { tls: options.tls }),
      onFault: (error, requestId) =>
        log.error({ err: error, requestId }, 'a fault of the apiserver'),
      onAnswered(answered) {
        metrics.answered(answered);
        logRequest(log, answered);
      },
    });
    const close = async (patienceMs?: number) => {
      await server.close(patienceMs);
      await letGo();
    };
    return { address: server.address, iam, watcher, close };
  } catch (thrown) {
    await letGo();
    throw thrown;
  }
}

function openCore(options: ApiserverOptions): Core {
  const { store, ticketKey, log, clock, random, platformProject } = options;
  const fleet = createFleet(
    options.edges.map((edge) => createEdgeLink({ edge, ticketKey, clock, random })),
  );
  const holder = { project: platformProject, principal: 'apiserver' };
  const placer = createPlacer({ watcher: () => watcher, clock, random });
  const watcher = createWatcher({
    ...{ edges: fleet.links.map(({ edgeId }) => edgeId), clock },
    read: (edge, query, signal) =>
      fleet.link(edge).call(ROUTES.getEdgeState, { query }, { holder, signal, patienceMs: 0 }),
    ...(options.watchEveryMs === undefined ? {} : { everyMs: options.watchEveryMs }),
    onAnswer: placer.own.seen,
    onHealth(edge, error) {
      if (error === undefined) log.info({ edge }, 'an edge answers');
      else log.warn({ edge, code: error.code }, 'an edge does not answer');
    },
  });
  const onLost = (edge: string, { code }: { readonly code: string }) =>
    log.warn({ edge, code }, 'the events of an edge are lost sight of');
  const events = createEvents({ fleet, holder, clock, onLost });
  const metrics = createApiserverMetrics(
    () => watcher,
    () => events.followers,
  );
  const life = createSandboxLife(() => watcher, clock);
  const children = createChildren(store.keys, life.hasEnded);
  const iam = openIam({ store, clock, random });
  return { iam, fleet, placer, watcher, events, metrics, life, children };
}

function handlersOf(options: ApiserverOptions, core: Core) {
  const { store, layers, version, clock, random, platformProject } = options;
  const { iam, fleet, placer, watcher, events, metrics, children } = core;
  const { keys } = store;
  const checkLayer =
    layers === undefined ? undefined : (selector: string) => resolveRef(layers, selector);
  const environments = createEnvironments(keys, clock, checkLayer);
  const layersOf = async (project: string, name: string) =>
    (await environments.get(project, name)).layers;
  const quota = createKeyQuota(clock);
  const parts = { fleet, placer, keys, quota, clock, random, layersOf, children };
  const docs = buildDocsPage(version);
  const create = createCreate(parts);
  return {
    ...createSandboxHandlers({ create, batch: createBatch(parts), fleet, children }),
    ...createGradeHandlers(createGrade({ fleet, create, clock })),
    ...createJobHandlers(createJobs(fleet, watcher)),
    ...createKeyHandlers({ iam, fleet, keys, quota, clock, random, platformProject }),
    ...createEnvironmentHandlers(environments),
    ...(layers === undefined ? createMissingLayerHandlers() : createLayerHandlers(layers)),
    ...createPlatformHandlers({
      ...{ version, fleet, watcher, events, metrics },
      health: createHealth({ keys, watcher, clock, random }),
    }),
    getDocs: async () => docs,
  };
}

/** Everything on one existing sandbox is its edge's. */
function isForwarded({ home, params }: Route): boolean {
  return home === 'edge' && Object.hasOwn(params.properties, 'sandboxId');
}
