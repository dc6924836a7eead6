/**
 * The form of a route. The table of all routes (`routes.ts`) is the one description of the public API:
 * servers register from it, clients build requests from it, and `spec/openapi.json` is generated from it.
 */
import type { Static, TObject, TProperties, TSchema } from 'typebox';
import Type from 'typebox';
import type { OperationClass } from '../ticket.ts';

/**
 * What a repetition does. `read`: nothing changes. `idempotent`: the second time is as the first.
 * `keyed`: safe to repeat only with the header `Idempotency-Key`, whose scope is project, principal, route
 * and sandbox (THREATS F2).
 */
export type RouteEffect = 'read' | 'idempotent' | 'keyed';

/**
 * Who does the work. `edge`: the edge that the sandbox id names; an apiserver forwards to it.
 * `apiserver`: what is shared by the fleet. `both`: an apiserver for the fleet (it places a create, merges
 * events), an edge for itself.
 */
export type RouteHome = 'edge' | 'apiserver' | 'both';

export type RouteBody =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly schema: TSchema }
  /** A stream of any length. */
  | { readonly kind: 'bytes' };

export type RouteReply =
  | { readonly kind: 'empty'; readonly status: 204 }
  | { readonly kind: 'json'; readonly status: 200 | 201; readonly schema: TSchema }
  /** A stream of any length, with the named headers (`HEADERS`). */
  | { readonly kind: 'bytes'; readonly status: 200; readonly headers: readonly HeaderName[] }
  | { readonly kind: 'text'; readonly status: 200; readonly contentType: string }
  /** A JSON document a line, each of the schema; ends when all is told. */
  | { readonly kind: 'lines'; readonly status: 200; readonly schema: TSchema }
  /** Server-sent events without end: `id` is the cursor, `data` of the schema. */
  | { readonly kind: 'events'; readonly status: 200; readonly schema: TSchema }
  /** A WebSocket: binary messages, and text messages of the schemas where there are some. */
  | {
      readonly kind: 'socket';
      readonly status: 101;
      readonly client: TSchema | undefined;
      readonly server: TSchema | undefined;
    };

/** Headers that carry meaning in an answer whose body is bytes. */
export const HEADERS = {
  'dsec-offset': 'Absolute offset of the first byte of the body.',
  'dsec-size-bytes': 'Size of the whole file.',
  'dsec-end': '`true` when the stream has ended with the last byte of the body.',
} as const;
export type HeaderName = keyof typeof HEADERS;

export const IDEMPOTENCY_HEADER = 'idempotency-key';
export const TICKET_HEADER = 'dsec-ticket';
/** The stream id that a ticket for a stream is bound to. */
export const STREAM_HEADER = 'dsec-stream';
/** The id that an apiserver has chosen for a sandbox to be made; its ticket names it. */
export const SANDBOX_HEADER = 'dsec-sandbox';
/** Longest JSON body of a request. */
export const JSON_BODY_BYTES_MAX = 1024 * 1024;

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** With `{name}` for each parameter. */
  readonly path: string;
  readonly summary: string;
  /** What a key must allow and a ticket must name; `none` needs neither. */
  readonly operationClass: OperationClass | 'none';
  readonly effect: RouteEffect;
  readonly home: RouteHome;
  readonly params: TObject;
  readonly query: TObject;
  readonly body: RouteBody;
  readonly reply: RouteReply;
}

/** Whether a route moves bytes or messages of any length: its ticket is bound to a stream, not to a body. */
export function isStreamRoute({ body, reply }: Route): boolean {
  return body.kind === 'bytes' || !['empty', 'json', 'text'].includes(reply.kind);
}

export type ParamsOf<R extends Route> = Static<R['params']>;
export type QueryOf<R extends Route> = Static<R['query']>;
export type BodyOf<R extends Route> = R['body'] extends { readonly schema: infer S extends TSchema }
  ? Static<S>
  : undefined;
/** Of a JSON answer the body, of lines and events one of them. */
export type ReplyOf<R extends Route> = R['reply'] extends {
  readonly schema: infer S extends TSchema;
}
  ? Static<S>
  : undefined;

/** Keeps the exact types of a route, for the types above. */
export const route = <const R extends Route>(value: R): R => value;

export const params = <P extends TProperties>(properties: P): TObject<P> =>
  Type.Object(properties, { additionalProperties: false });
export const none = params({});

export const noBody = { kind: 'none' } as const;
export const byteBody = { kind: 'bytes' } as const;
export const jsonBody = <S extends TSchema>(schema: S) => ({ kind: 'json', schema }) as const;

export const empty = { kind: 'empty', status: 204 } as const;
export const ok = <S extends TSchema>(schema: S) =>
  ({ kind: 'json', status: 200, schema }) as const;
export const created = <S extends TSchema>(schema: S) =>
  ({ kind: 'json', status: 201, schema }) as const;
export const lines = <S extends TSchema>(schema: S) =>
  ({ kind: 'lines', status: 200, schema }) as const;
export const events = <S extends TSchema>(schema: S) =>
  ({ kind: 'events', status: 200, schema }) as const;
export const byteReply = <const H extends readonly HeaderName[]>(headers: H) =>
  ({ kind: 'bytes', status: 200, headers }) as const;
export const text = (contentType: string) => ({ kind: 'text', status: 200, contentType }) as const;
export const socket = <C extends TSchema | undefined, S extends TSchema | undefined>(
  client: C,
  server: S,
) => ({ kind: 'socket', status: 101, client, server }) as const;
