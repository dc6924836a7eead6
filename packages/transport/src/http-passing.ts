import { DsecError } from '@dsec/std';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { callOf, type Dispatch, factsOf } from './http-dispatch.ts';
import { hasBody } from './http-guard.ts';
import type { Exchange, Forward } from './http-routes.ts';

export interface Passing<Principal> extends Omit<Dispatch<Principal>, 'handler'> {
  readonly forward: Forward<Principal>;
}

/**
 * One request that is answered by somebody else: who calls, and on with it. Query and body are checked
 * where they are used.
 */
export async function passOn<Principal>(
  { operation, route, forward, authorize, ...parts }: Passing<Principal>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const facts = factsOf(operation, route, request, parts.bodyDigestOf(request));
  const principal = await authorize(facts);
  if (route.body.kind === 'none' && hasBody(request.raw)) {
    throw new DsecError('invalid-argument', 'this operation takes no body');
  }
  const call = callOf(facts, principal, parts.lifetimes.begin(reply.raw, facts));
  parts.records.letIn(request, call);
  let hasBegun = false;
  const exchange: Exchange = {
    request: request.raw,
    body: Buffer.isBuffer(request.body) && request.body.length > 0 ? request.body : undefined,
    begin() {
      hasBegun = true;
      reply.hijack();
      return reply.raw;
    },
    take() {
      const connection = parts.upgrades.take(request.raw, reply.raw);
      hasBegun = true;
      reply.hijack();
      return connection;
    },
  };
  try {
    await forward(call, exchange);
  } catch (thrown) {
    if (!hasBegun) throw thrown;
    parts.records.failed(
      request,
      thrown instanceof DsecError
        ? thrown
        : new DsecError('unavailable', 'the answer broke off', { cause: thrown }),
    );
  }
  if (route.reply.kind === 'socket') parts.records.end(request, 101);
  return reply;
}
