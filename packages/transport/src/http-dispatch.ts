import type { IncomingMessage } from 'node:http';
import {
  check,
  IDEMPOTENCY_HEADER,
  names,
  parseParams,
  parseQuery,
  type Route,
} from '@dsec/protocol';
import { type Digest, DsecError } from '@dsec/std';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CallLifetimes } from './call-lifetimes.ts';
import type { CallRecords } from './call-records.ts';
import { sendAnswer } from './http-answer.ts';
import { failureOf } from './http-errors.ts';
import { hasBody } from './http-guard.ts';
import type { Authorizer, Call, RequestFacts } from './http-routes.ts';
import { REQUEST_ID_HEADER, TRACEPARENT_HEADER, traceparentOf } from './trace.ts';
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
  readonly onFault: (error: DsecError, requestId: string) => void;
  readonly records: CallRecords<Principal>;
}

/** One request from its route to its answer: who calls, does it fit the route, the handler, the answer. */
export async function dispatch<Principal>(
  { operation, route, handler, authorize, ...parts }: Dispatch<Principal>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const facts = factsOf(operation, route, request, parts.bodyDigestOf(request));
  const query = parseQuery(route, new URLSearchParams(facts.target.split('?').slice(1).join('?')));
  const principal = await authorize(facts);
  const input = { params: facts.params, query, body: bodyOf(route, request) };
  const call = callOf(facts, principal, parts.lifetimes.begin(reply.raw, facts));
  parts.records.letIn(request, call);
  if (route.reply.kind !== 'socket') {
    return sendAnswer(reply, route, await handler(input, call));
  }
  const channel = await parts.upgrades.accept(request.raw, reply.raw, {
    [REQUEST_ID_HEADER]: facts.requestId,
    [TRACEPARENT_HEADER]: facts.traceparent,
  });
  reply.hijack();
  try {
    await handler(input, call, channel);
    await channel.close();
  } catch (thrown) {
    const { error, told } = failureOf(thrown, request.id);
    if (error.code === 'internal') parts.onFault(error, request.id);
    parts.records.failed(request, error);
    await channel.close(told);
  }
  parts.records.end(request, 101);
  return reply;
}

export function factsOf(
  operation: string,
  route: Route,
  request: FastifyRequest,
  bodyDigest: Digest | undefined,
): RequestFacts {
  const { headers } = request;
  return {
    ...{ operation, route, headers, bodyDigest },
    params: parseParams(route, request.params as Readonly<Record<string, unknown>>),
    method: request.method,
    target: request.raw.url ?? '',
    requestId: request.id,
    traceparent: traceparentOf(headers[TRACEPARENT_HEADER]),
  };
}

export function callOf<Principal>(
  facts: RequestFacts,
  principal: Principal,
  signal: AbortSignal,
): Call<Principal> {
  const idempotencyKey = idempotencyKeyOf(facts.headers[IDEMPOTENCY_HEADER]);
  return { ...facts, principal, idempotencyKey, signal };
}

function bodyOf(route: Route, request: FastifyRequest): unknown {
  switch (route.body.kind) {
    case 'json':
      return check(route.body.schema, request.body, 'body');
    case 'bytes':
      return bytesOf(request.raw);
    default:
      if (hasBody(request.raw)) {
        throw new DsecError('invalid-argument', 'this operation takes no body');
      }
      return undefined;
  }
}

/** Leaving this loop leaves the connection intact, so that an answer can still be sent. */
async function* bytesOf(request: IncomingMessage): AsyncGenerator<Uint8Array> {
  try {
    yield* request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
  } catch (cause) {
    throw new DsecError('cancelled', 'the caller is gone', { cause });
  }
}

function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  return check(names.idempotencyKey, header, IDEMPOTENCY_HEADER);
}
