import {
  type BodyOf,
  check,
  formatTarget,
  type HeaderName,
  type ParamsOf,
  type QueryOf,
  type ReplyOf,
  type Route,
} from '@dsec/protocol';
import { assertNever, DsecError } from '@dsec/std';
import type { TSchema } from 'typebox';
import { parseJson, readEvents, readLines } from './http-body.ts';
import type { HttpClient, HttpRequest } from './http-client.ts';
import type { EventAnswer } from './http-routes.ts';

type OptionalIfEmpty<Name extends string, T> =
  Record<string, never> extends T ? { readonly [K in Name]?: T } : { readonly [K in Name]: T };

/** What a call of a route takes: parameters, query and body, each only where the route has one. */
export type CallInput<R extends Route> = OptionalIfEmpty<'params', ParamsOf<R>> &
  OptionalIfEmpty<'query', QueryOf<R>> &
  (R['body'] extends { readonly kind: 'json' }
    ? { readonly body: BodyOf<R> }
    : R['body'] extends { readonly kind: 'bytes' }
      ? { readonly body: Uint8Array | AsyncIterable<Uint8Array> }
      : { readonly body?: undefined });

export type CallOptions = Pick<
  HttpRequest,
  'headers' | 'idempotencyKey' | 'traceparent' | 'deadlineMs' | 'silenceMs' | 'retries' | 'signal'
>;

export interface BytesReply {
  readonly headers: Partial<Record<HeaderName, string>>;
  readonly body: AsyncIterable<Uint8Array>;
}

interface ReplyByKind<R extends Route> {
  readonly empty: undefined;
  readonly json: ReplyOf<R>;
  readonly bytes: BytesReply;
  readonly text: string;
  readonly lines: AsyncIterable<ReplyOf<R>>;
  readonly events: AsyncIterable<EventAnswer<ReplyOf<R>>>;
  readonly socket: never;
}

export type CallReply<R extends Route> = ReplyByKind<R>[R['reply']['kind']];

/**
 * Calls an operation by its route. The body is checked before it is sent (`invalid-argument`) and
 * the answer before it is returned (`protocol`). Of lines and events each is checked as it comes;
 * leaving their loop ends the response.
 */
export async function callRoute<R extends Route>(
  client: HttpClient,
  route: R,
  input: CallInput<R>,
  options: CallOptions = {},
): Promise<CallReply<R>> {
  const request = requestOf(route, input, options);
  return (await receive(client, route, request)) as CallReply<R>;
}

function requestOf<R extends Route>(
  route: R,
  { params = {}, query = {}, body }: { params?: unknown; query?: unknown; body?: unknown },
  options: CallOptions,
): HttpRequest {
  const target = formatTarget(route, params as ParamsOf<R>, query as QueryOf<R>);
  const common = {
    ...options,
    method: route.method,
    target,
    isIdempotent: route.effect !== 'keyed',
  };
  switch (route.body.kind) {
    case 'none':
      return common;
    case 'bytes':
      return {
        ...common,
        headers: { ...options.headers, 'content-type': 'application/octet-stream' },
        body: body as Uint8Array | AsyncIterable<Uint8Array>,
      };
    case 'json':
      return {
        ...common,
        headers: { ...options.headers, 'content-type': 'application/json' },
        body: Buffer.from(JSON.stringify(check(route.body.schema, body, 'body'))),
      };
    default:
      return assertNever(route.body);
  }
}

async function receive(client: HttpClient, route: Route, request: HttpRequest): Promise<unknown> {
  const { reply } = route;
  switch (reply.kind) {
    case 'empty':
      await client.read(request);
      return undefined;
    case 'json':
      return conforming(reply.schema, parseJson((await client.read(request)).body));
    case 'text':
      return (await client.read(request)).body.toString('utf8');
    case 'bytes': {
      const { headers, body } = await client.open(request);
      return { headers: pickHeaders(headers, reply.headers), body };
    }
    case 'lines':
      return linesOf(reply.schema, (await client.open(request)).body);
    case 'events':
      return eventsOf(reply.schema, (await client.open(request)).body);
    case 'socket':
      throw new DsecError('invalid-argument', 'this operation is a WebSocket');
    default:
      return assertNever(reply);
  }
}

function conforming(schema: TSchema, value: unknown): unknown {
  try {
    return check(schema, value, 'answer');
  } catch (cause) {
    throw new DsecError('protocol', 'the answer does not fit the operation', { cause });
  }
}

function pickHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  names: readonly HeaderName[],
): Partial<Record<HeaderName, string>> {
  const picked: Partial<Record<HeaderName, string>> = {};
  for (const name of names) {
    const value = headers[name];
    if (typeof value === 'string') picked[name] = value;
  }
  return picked;
}

async function* linesOf(schema: TSchema, body: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
  for await (const line of readLines(body)) {
    yield conforming(schema, parseJson(Buffer.from(line)));
  }
}

async function* eventsOf(
  schema: TSchema,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<EventAnswer<unknown>> {
  for await (const { id, data } of readEvents(body)) {
    yield { id, data: conforming(schema, parseJson(Buffer.from(data))) };
  }
}
