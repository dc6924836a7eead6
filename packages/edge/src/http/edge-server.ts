import type { KeyObject } from 'node:crypto';
import type { Clock, EdgeId } from '@dsec/std';
import {
  createHttpServer,
  createTicketVerifier,
  type HttpServer,
  type HttpServerLimits,
  type ListenAddress,
} from '@dsec/transport';
import type { Sandboxes } from '../sandboxes.ts';
import type { EdgeMetrics } from './edge-metrics.ts';
import { EDGE_ROUTES } from './edge-routes.ts';
import type { EdgeHandlers } from './handlers.ts';
import { logRequest, type RequestLog } from './request-log.ts';
import { createTicketAuthorizer } from './ticket-authorizer.ts';

export interface EdgeServerOptions {
  readonly listen: ListenAddress;
  readonly edgeId: EdgeId;
  /** Of those who may sign tickets, by key id. */
  readonly publicKeys: ReadonlyMap<string, KeyObject>;
  readonly clock: Clock;
  readonly sandboxes: Pick<Sandboxes, 'find'>;
  readonly handlers: EdgeHandlers;
  readonly metrics: EdgeMetrics;
  readonly log: RequestLog;
  /** Values of the Host header that are answered. Default: the names of loopback. */
  readonly allowedHosts?: readonly string[];
  readonly limits?: Partial<HttpServerLimits>;
}

export interface EdgeServer extends HttpServer {
  /** Replaces the keys: tickets of one that is gone are refused from now on. */
  setPublicKeys(publicKeys: ReadonlyMap<string, KeyObject>): void;
}

/** Serves the public routes of an edge to holders of tickets. Pages in browsers may never call it. */
export async function startEdgeServer(options: EdgeServerOptions): Promise<EdgeServer> {
  const { listen, edgeId, publicKeys, clock, sandboxes, handlers, metrics, log } = options;
  const verifier = createTicketVerifier({ publicKeys, edgeId, clock });
  const server = await createHttpServer({
    ...{ listen, handlers, routes: EDGE_ROUTES },
    authorize: createTicketAuthorizer(verifier, sandboxes),
    ...(options.allowedHosts === undefined ? {} : { allowedHosts: options.allowedHosts }),
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    onFault: (error, requestId) => log.error({ err: error, requestId }, 'a fault of the edge'),
    onAnswered(answered) {
      metrics.answered(answered);
      logRequest(log, answered);
    },
  });
  return { ...server, setPublicKeys: (keys) => verifier.setPublicKeys(keys) };
}
