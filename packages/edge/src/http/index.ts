export { createEdgeHandlers, type EdgeServices } from './edge-handlers.ts';
export { createEdgeMetrics, type EdgeMetrics } from './edge-metrics.ts';
export { EDGE_ROUTES, type EdgeOperation, type EdgeRoutes, UNSUPPORTED } from './edge-routes.ts';
export { type EdgeServer, type EdgeServerOptions, startEdgeServer } from './edge-server.ts';
export type { EdgeHandlers } from './handlers.ts';
export type { RequestLog } from './request-log.ts';
export type { SandboxLifecycle } from './sandbox-handlers.ts';
export type { Visitor } from './ticket-authorizer.ts';
