import {
  check,
  IDEMPOTENCY_HEADER,
  names,
  parseParams,
  parseQuery,
  type Route,
} from '@dsec/protocol';
import { asDsecError, type Digest, DsecError } from '@dsec/std';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CallLifetimes } from './call-lifetimes.ts';
import { sendAnswer } from './http-answer.ts';
import { hasBody } from './http-guard.ts';
import type { Authorizer, Call, RequestFacts } from './http-routes.ts';
import { TRACEPARENT_HEADER, traceparentOf } from './trace.ts';
import type { WebSocketChannel } from './websocket-channel.ts';
import type { WebSocketUpgrades } from './websocket-upgrade.ts';

/** A handler without the types of its route. */
export type AnyHandler<Principal> = (
  input: { params: unknown; query: unknown; body: unknown },
  call: Call<Principal>,
  channel?: WebSocketChannel,
) => Promise<unknown>;

export interface Dispatch<Principal> {
  readonly operation: string;
  readonly route: Route;
  readonly handler: AnyHandler<Principal>;
  readonly authorize: Authorizer<Principal>;
  /** The digest of a JSON body that the parser has read. */
  readonly bodyDigestOf: (request: FastifyRequest) => Digest | undefined;
  readonly lifetimes: CallLifetimes;
  readonly upgrades: WebSocketUpgrades;
}

/** One request from its route to its answer: who calls, does it fit the route, the handler, the answer. */
export async function dispatch<Principal>(
  { operation, route, handler, authorize, ...parts }: Dispatch<Principal>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const { headers } = request;
  const target = request.raw.url ?? '';
  const params = parseParams(route, request.params as Readonly<Record<string, unknown>>);
  const query = parseQuery(route, new URLSearchParams(target.split('?').slice(1).join('?')));
  const facts: RequestFacts = {
    operation,
    route,
    params,
    method: request.method,
    target,
    headers,
    bodyDigest: parts.bodyDigestOf(request),
    requestId: request.id,
    traceparent: traceparentOf(headers[TRACEPARENT_HEADER]),
  };
  const principal = await authorize(facts);
  const input = { params, query, body: bodyOf(route, request) };
  const call: Call<Principal> = {
    ...facts,
    principal,
    idempotencyKey: idempotencyKeyOf(headers[IDEMPOTENCY_HEADER]),
    signal: parts.lifetimes.begin(reply.raw, route),
  };
  if (route.reply.kind !== 'socket') {
    return sendAnswer(reply, route, await handler(input, call));
  }
  const channel = await parts.upgrades.accept(request.raw, reply.raw);
  reply.hijack();
  await handler(input, call, channel).then(
    () => channel.close(),
    (thrown) => channel.close(asDsecError(thrown)),
  );
  return reply;
}

function bodyOf(route: Route, request: FastifyRequest): unknown {
  switch (route.body.kind) {
    case 'json':
      return check(route.body.schema, request.body, 'body');
    case 'bytes':
      return request.raw;
    default:
      if (hasBody(request.raw)) {
        throw new DsecError('invalid-argument', 'this operation takes no body');
      }
      return undefined;
  }
}

function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  return check(names.idempotencyKey, header, IDEMPOTENCY_HEADER);
}
