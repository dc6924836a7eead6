/** An apiserver, put together: stateless but for the store, so that any number of them serve one fleet. */
import { type Iam, openIam } from '@dsec/iam';
import { ROUTES, type Route } from '@dsec/protocol';
import type { Clock, ProjectId, Random } from '@dsec/std';
import type { Store } from '@dsec/store';
import { createHttpServer, type HttpServerLimits, type ListenAddress } from '@dsec/transport';
import { createWatcher, type Watcher } from '@dsec/watcher';
import { type ApiserverLog, logRequest } from './apiserver-log.ts';
import { createCreate } from './create/create.ts';
import { createPlacer } from './create/placer.ts';
import { createEdgeLink, type EdgeAddress } from './fleet/edge-link.ts';
import { createFleet } from './fleet/fleet.ts';
import type { TicketKey } from './fleet/ticket-signer.ts';
import { createForward } from './forward/forward.ts';
import { readHealth } from './health.ts';
import { createKeyAuthorizer } from './http/key-authorizer.ts';
import { createPlatformHandlers } from './http/platform-handlers.ts';
import { createSandboxHandlers } from './http/sandbox-handlers.ts';

export interface ApiserverOptions {
  readonly listen: ListenAddress;
  readonly edges: readonly EdgeAddress[];
  readonly store: Store;
  readonly ticketKey: TicketKey;
  /** Whose tickets edges let see everything; no key is ever of this project. */
  readonly platformProject: ProjectId;
  /** Of DSec. */
  readonly version: string;
  readonly log: ApiserverLog;
  readonly clock: Clock;
  readonly random: Random;
  /** Values of the Host header that are answered. Default: the names of loopback. */
  readonly allowedHosts?: readonly string[];
  readonly limits?: Partial<HttpServerLimits>;
}

export interface Apiserver {
  /** Where it listens. */
  readonly address: ListenAddress;
  readonly iam: Iam;
  readonly watcher: Watcher;
  /** Answers what was asked, then lets go. The store is the caller's. */
  close(patienceMs?: number): Promise<void>;
}

/** Resolves when it serves. Rejects when it cannot listen. */
export async function startApiserver(options: ApiserverOptions): Promise<Apiserver> {
  const { listen, store, ticketKey, version, log, clock, random, platformProject } = options;
  const iam = openIam({ store, clock, random });
  const fleet = createFleet(
    options.edges.map((edge) => createEdgeLink({ edge, ticketKey, clock, random })),
  );
  const holder = { project: platformProject, principal: 'apiserver' };
  const placer = createPlacer(() => watcher, random);
  const watcher = createWatcher({
    ...{ edges: fleet.links.map(({ edgeId }) => edgeId), clock },
    read: (edge, query, signal) =>
      fleet.link(edge).call(ROUTES.getEdgeState, { query }, { holder, signal, patienceMs: 0 }),
    onAnswer: placer.own.seen,
    onHealth(edge, error) {
      if (error === undefined) log.info({ edge }, 'an edge answers');
      else log.warn({ edge, code: error.code }, 'an edge does not answer');
    },
  });
  const parts = { fleet, placer, keys: store.keys, clock, random };
  const create = createCreate({ ...parts, layersOf: async () => [] });
  const server = await createHttpServer({
    ...{ listen, routes: ROUTES },
    handlers: {
      ...createSandboxHandlers({ create }),
      ...createPlatformHandlers({ version, health: () => readHealth(store.keys, watcher) }),
    },
    isForwarded,
    forward: createForward({ fleet, clock, random }),
    authorize: createKeyAuthorizer(iam),
    ...(options.allowedHosts === undefined ? {} : { allowedHosts: options.allowedHosts }),
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    onFault: (error, requestId) => log.error({ err: error, requestId }, 'a fault of the apiserver'),
    onAnswered: (answered) => logRequest(log, answered),
  });
  return {
    ...{ address: server.address, iam, watcher },
    async close(patienceMs) {
      await server.close(patienceMs);
      watcher.close();
      await fleet.close();
    },
  };
}

/** Everything on one existing sandbox is its edge's. */
function isForwarded({ home, params }: Route): boolean {
  return home === 'edge' && Object.hasOwn(params.properties, 'sandboxId');
}
