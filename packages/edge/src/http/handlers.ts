import { type Call, type RouteHandler, type RouteHandlers, sha256Of } from '@dsec/transport';
import type { KeyedContext, OperationContext } from '../operation.ts';
import type { EdgeOperation, EdgeRoutes } from './edge-routes.ts';
import { callerOfVisitor, type Visitor } from './ticket-authorizer.ts';

/** One for every route that an edge serves: the compiler misses those that are not there. */
export type EdgeHandlers = {
  readonly [Id in EdgeOperation]: RouteHandler<EdgeRoutes[Id], Visitor>;
} & RouteHandlers<EdgeRoutes, Visitor>;

export function contextOf(call: Call<Visitor>): OperationContext {
  const { signal, traceparent } = call;
  return { caller: callerOfVisitor(call.principal), signal, traceparent };
}

/** The digest is of the whole request, since what a request without a body asks for is in its target. */
export function keyedContextOf(call: Call<Visitor>): KeyedContext {
  const { idempotencyKey, target, bodyDigest = '' } = call;
  const requestDigest = sha256Of(`${target}\n${bodyDigest}`);
  return { ...contextOf(call), idempotencyKey, requestDigest };
}
